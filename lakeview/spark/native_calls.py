"""Lists of paths to the JVM of a classic session and back, in one call: PySpark makes a call for each path, which for
some hundred files takes longer than all else that is planned. Spark Connect sends a plan as a whole."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, DataFrameReader


def read_parquet(reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
    """The rows of files, of whose paths none has a line break."""
    if (java_reader := getattr(reader, "_jreader", None)) is None:
        return reader.parquet(*paths)
    jvm = reader._spark._jvm
    assert jvm is not None
    return reader._df(java_reader.parquet(jvm.java.util.regex.Pattern.compile("\n").split("\n".join(paths))))


def input_files(rows: DataFrame) -> list[str]:
    """The URIs of the files that a plan reads."""
    if (java_rows := getattr(rows, "_jdf", None)) is None:
        return rows.inputFiles()
    jvm = rows.sparkSession._jvm
    assert jvm is not None
    uris: str = jvm.org.apache.hadoop.util.StringUtils.join("\n", java_rows.inputFiles())
    return uris.split("\n") if uris else []
