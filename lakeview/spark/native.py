"""Data files to rows by Spark's own Parquet reader: one scan for the files alike, joined with what the log records.

A scan yields the columns of the table, under positions as names (`c0`, `c1`, ...), so that no column of a table can
collide with one of ours. Partition values are Spark's own where the names of folders say what the log says, literals
where few combinations are read. Otherwise, and for deletion vectors, a broadcast table of the files is joined by path:
Spark's own spelling of each path is taken from Spark, and a query that needs a value of a row whose file is not in that
table fails, as one does that reads a row which may be deleted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark_types

from lakeview.model.arrow_types import arrow_type
from lakeview.model.data_types import DataType, DecimalType, Field, PrimitiveType
from lakeview.model.errors import CorruptTableError
from lakeview.model.schema import Schema, quote_name
from lakeview.spark.native_files import NativeFile
from lakeview.spark.native_layout import are_distinct, folder_values, partition_fields
from lakeview.spark.types import ddl, to_spark

LITERAL_SCANS = 32
"""How many combinations of partition values are read as scans of their own; beyond, the values are joined."""

_SETTINGS: Mapping[str, str] = {
    "recursiveFileLookup": "true",  # otherwise the names of folders become columns
    # the session may have Spark leave out what it cannot read, and read old dates by the old calendar
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
_PREFIX = "file://"
METADATA_PREFIX = "file:"
"""What stands before a path in `_metadata.file_path`, and not in `inputFiles`."""


def native_rows(spark: SparkSession, files: Sequence[NativeFile], schema: Schema) -> list[DataFrame]:
    """Frames that together hold the rows of the files, with the columns of `schema` under positions as names."""
    with_vectors = [file for file in files if file.deleted_rows]
    without_vectors = [file for file in files if not file.deleted_rows]
    alike = _group_files(without_vectors, by_values=True)
    frames: list[DataFrame] = []
    if len(alike) > 1:
        layouts = _group_files(without_vectors, by_values=False)
        by_folders = _with_folders(layouts, schema)
        frames += [_Scan(spark, group, schema, fields).with_folders() for group, fields in by_folders]
        alike = _without(alike, (group for group, _ in by_folders))
        if len(alike) > LITERAL_SCANS and len(alike) > len(layouts):
            with_vectors += [file for group in alike for file in group]
            alike = []
    frames += [_Scan(spark, group, schema).with_literals() for group in alike]
    return frames + [_Scan(spark, group, schema).with_join() for group in _group_files(with_vectors, by_values=False)]


def _with_folders(
    layouts: Iterable[list[NativeFile]], schema: Schema
) -> list[tuple[list[NativeFile], list[spark_types.StructField]]]:
    """The groups whose columns Spark reads from the names of folders, with these columns."""
    return [(group, fields) for group in layouts if (fields := _partitions(group, schema)) is not None]


def _without(groups: Iterable[list[NativeFile]], read: Iterable[list[NativeFile]]) -> list[list[NativeFile]]:
    paths = {file.path for group in read for file in group}
    return [group for group in groups if group[0].path not in paths]


def _partitions(files: Sequence[NativeFile], schema: Schema) -> list[spark_types.StructField] | None:
    """The columns that Spark reads from the names of these files' folders; None if one says other values than the log.

    The files are of one layout.
    """
    partitions: list[spark_types.StructField] | None = None
    for file in files:
        if file.root is None or file.root != files[0].root or not file.constants:
            return None
        folders = folder_values(file.path.removeprefix(f"{file.root}/"))
        fields = None if folders is None else partition_fields(folders, file.constants, schema)
        if fields is None or (partitions is not None and fields != partitions):
            return None
        partitions = fields
    if not partitions or not are_distinct(field.name for field in (*partitions, *files[0].layout.schema)):
        return None
    return partitions


def _group_files(files: Iterable[NativeFile], *, by_values: bool) -> list[list[NativeFile]]:
    """Files of one layout, and with the same values in the log."""
    groups: dict[Any, list[NativeFile]] = {}
    for file in files:
        # by their text: -0.0 equals 0.0, and NaN does not equal itself
        values = (
            tuple((name, repr(value)) for name, value in file.constants.items()) if by_values else tuple(file.constants)
        )
        groups.setdefault((file.layout.key, values), []).append(file)
    return list(groups.values())


class _Scan:
    """One scan of files of one layout, whose log has values of the same columns."""

    def __init__(
        self,
        spark: SparkSession,
        files: Sequence[NativeFile],
        schema: Schema,
        partitions: Sequence[spark_types.StructField] = (),
    ) -> None:
        self._spark = spark
        self._files = files
        self._schema = schema
        self._types = [field.dataType for field in to_spark(schema)]
        self._layout = files[0].layout
        self._partitions = partitions
        self._uris: Sequence[str] = ()
        self._rows = self._read()

    def with_folders(self) -> DataFrame:
        """The rows of files whose folders have the partition values; no row is deleted."""
        return self._rows.selectExpr(*self._columns({name: quote_name(name) for name in self._files[0].constants}))

    def with_literals(self) -> DataFrame:
        """The rows of files that share their partition values; no row is deleted."""
        constants = self._files[0].constants
        values = {name: _literal(constants[name], self._schema[name]) for name in constants if name in self._schema}
        return self._rows.selectExpr(*self._columns(values))

    def with_join(self) -> DataFrame:
        """The rows of files with partition values and deletion vectors of their own."""
        names = [name for name in self._files[0].constants if name in self._schema]
        values = {name: f"v{number}" for number, name in enumerate(names)}
        metadata = self._metadata()
        has_vectors = any(file.deleted_rows for file in self._files)
        rows = self._rows.selectExpr(
            *self._columns(dict.fromkeys(names, "NULL")),
            f"{metadata}.file_path AS path",
            *([f"{metadata}.row_index AS position"] if has_vectors else []),
        )
        facts = self._facts(names)
        if not has_vectors:  # Spark leaves out a join by unique keys of which a query needs no value, as a count
            facts = facts.coalesce(1).dropDuplicates(["key"])
        rows = rows.join(f.broadcast(facts), f.expr("path = key"), "left")
        error = "raise_error(concat('lakeview planned no file ', path))"
        if has_vectors:
            word = "get(words, CAST(position / 64 AS INT))"
            is_live = f"coalesce(getbit({word}, CAST(position % 64 AS INT)), 0) = 0"
            rows = rows.where(f"if(key IS NULL, CAST({error} AS BOOLEAN), {is_live})")
        else:
            values = {name: f"if(key IS NULL, {error}, {value})" for name, value in values.items()}
        return rows.selectExpr(
            *[f"{values.get(field.name, f'c{number}')} AS c{number}" for number, field in enumerate(self._schema)]
        )

    def _metadata(self) -> str:
        """Under which name Spark has the path of a row's file: one that no column has as the session compares names."""
        names = {field.name for field in (*self._layout.schema, *self._partitions)}
        if self._spark.conf.get("spark.sql.caseSensitive") == "false":
            names = {name.lower() for name in names}
        name = "_metadata"
        while name in names:
            name = f"_{name}"
        return name

    def _read(self) -> DataFrame:
        """The scan itself. CorruptTableError if Spark would read other files than planned."""
        schema = self._layout.schema
        if not schema:  # rows without columns: of one that no file has
            schema = spark_types.StructType([spark_types.StructField("none", spark_types.BooleanType())])
        reader = self._spark.read.schema(spark_types.StructType([*schema, *self._partitions])).options(**_SETTINGS)
        if self._partitions:
            reader = reader.options(basePath=f"{_PREFIX}{self._files[0].root}", recursiveFileLookup=False)
        rows = _read_parquet(reader, [_PREFIX + file.path for file in self._files])
        self._uris = _input_files(rows)  # once: Spark optimizes the plan for it
        paths = sorted(unquote(uri.removeprefix(_PREFIX)) for uri in self._uris)
        if paths != sorted(file.path for file in self._files):
            missing = sorted({file.path for file in self._files}.symmetric_difference(paths))
            raise CorruptTableError(
                f"Spark lists {len(paths)} of {len(self._files)} data files; they differ by {missing[:1]}",
                fix="read the table with native=False",
                place=missing[0] if missing else "",
                kind="files-not-listed",
            )
        return rows

    def _columns(self, values: Mapping[str, str]) -> list[str]:
        """The columns of the schema in SQL: values of the log, else what the files store, else null."""
        names = iter(self._layout.columns)
        columns = []
        for number, (field, kind) in enumerate(zip(self._schema, self._types, strict=True)):
            in_log = field.name in self._files[0].constants
            name = None if in_log else next(names)
            if in_log:
                column = values[field.name]
            elif name is None:
                column = _cast("NULL", kind)
            else:
                column = quote_name(name)
                if self._layout.schema[name].dataType != kind:  # fields of structs are renamed
                    column = _cast(column, kind)
                column = _without_pushed_filters(column, kind)
            columns.append(f"{column} AS c{number}")
        return columns

    def _facts(self, names: Sequence[str]) -> DataFrame:
        """One row a file: `key`, the path as `_metadata.file_path` has it, `words`, and the values of the log."""
        keys = {unquote(uri.removeprefix(_PREFIX)): METADATA_PREFIX + uri.removeprefix(_PREFIX) for uri in self._uris}
        fields = [spark_types.StructField("key", spark_types.StringType())]
        fields.append(spark_types.StructField("words", spark_types.ArrayType(spark_types.LongType())))
        arrays = [
            pa.array([keys[file.path] for file in self._files], pa.string()),
            pa.array([file.words() if file.deleted_rows else None for file in self._files], pa.list_(pa.int64())),
        ]
        for number, name in enumerate(names):
            kind = to_spark(Schema((self._schema[name],)))[0].dataType
            fields.append(spark_types.StructField(f"v{number}", kind))
            arrays.append(pa.array([file.constants[name] for file in self._files], arrow_type(self._schema[name].type)))
        schema = spark_types.StructType(fields)
        return self._spark.createDataFrame(pa.table(arrays, names=schema.names), schema)


def _cast(column: str, kind: spark_types.DataType) -> str:
    return f"CAST({column} AS {ddl(kind)})"


def _literal(value: Any, field: Field) -> str:
    """A value of the log in SQL that Spark folds, and believes may be null, as every column of a table."""
    kind = to_spark(Schema((field,)))[0].dataType
    constant = "NULL" if value is None else _constant(value, field.type)
    return f"if(CAST(NULL AS BOOLEAN), {_cast('NULL', kind)}, {_cast(constant, kind)})"


def _constant(value: Any, type_: DataType) -> str:
    match type_:
        case DecimalType():
            return f"'{value:f}'"
        case PrimitiveType("timestamp"):
            return f"timestamp_micros({pa.scalar(value, pa.timestamp('us', 'UTC')).value})"
        case PrimitiveType("timestamp_ntz" | "date"):
            return f"'{value.isoformat()}'"
        case PrimitiveType("binary"):
            return f"X'{value.hex()}'"
        case PrimitiveType("string"):  # of which a setting says whether backslashes in a literal are escapes
            return f"X'{value.encode().hex()}'"
        case PrimitiveType("float"):
            return f"CAST('{value}' AS DOUBLE)"
    return f"'{value}'"


def _without_pushed_filters(column: str, kind: spark_types.DataType) -> str:
    """The column, and where it is a floating-point number so that no filter on it is pushed to the file: writers leave
    NaN out of bounds, and to Spark it is the largest; and Parquet's dictionaries hold 0.0 and -0.0 apart, which Spark
    takes for equal. Of a struct each field, so that a query reads those that it needs."""
    if isinstance(kind, spark_types.FloatType | spark_types.DoubleType):
        return f"nanvl({column}, CAST('NaN' AS {ddl(kind)}))"
    if not isinstance(kind, spark_types.StructType) or not _has_floats(kind):
        return column
    fields = [(f"{column}.{quote_name(each.name)}", quote_name(each.name), each.dataType) for each in kind]
    parts = ", ".join(f"{_without_pushed_filters(part, kind)} AS {name}" for part, name, kind in fields)
    return f"if({column} IS NOT NULL, struct({parts}), NULL)"


def _has_floats(kind: spark_types.DataType) -> bool:
    """Whether fields of a struct, reached through structs only, are floating-point numbers."""
    if isinstance(kind, spark_types.StructType):
        return any(_has_floats(field.dataType) for field in kind)
    return isinstance(kind, spark_types.FloatType | spark_types.DoubleType)


# PySpark makes a call to the JVM of a classic session for each path, which for some hundred files takes longer than all
# else that is planned: these two make one. Spark Connect sends a plan as a whole.


def _read_parquet(reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
    """The rows of files, of whose paths none has a line break."""
    if (java_reader := getattr(reader, "_jreader", None)) is None:
        return reader.parquet(*paths)
    jvm = reader._spark._jvm
    assert jvm is not None
    return reader._df(java_reader.parquet(jvm.java.util.regex.Pattern.compile("\n").split("\n".join(paths))))


def _input_files(rows: DataFrame) -> list[str]:
    """The URIs of the files that a plan reads."""
    if (java_rows := getattr(rows, "_jdf", None)) is None:
        return rows.inputFiles()
    jvm = rows.sparkSession._jvm
    assert jvm is not None
    uris: str = jvm.org.apache.hadoop.util.StringUtils.join("\n", java_rows.inputFiles())
    return uris.split("\n") if uris else []
