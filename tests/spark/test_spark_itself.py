"""Spark's own behaviour that the source is built around: a pyspark that behaves otherwise fails here, by name."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, GreaterThan, InputPartition
from pyspark.sql.types import StructType

from lakeview.spark.jobs import KILL_TIMEOUT

pytestmark = pytest.mark.spark


class Ten(DataSource):
    """The numbers 0 to 9, by a reader that takes filters as Spark's documentation says."""

    @classmethod
    def name(cls) -> str:
        return "ten"

    def schema(self) -> str:
        return "n long"

    def reader(self, schema: StructType) -> DataSourceReader:
        return TenReader()


class TenReader(DataSourceReader):
    def __init__(self) -> None:
        self.above = -1

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (Spark's name)
        for one in filters:
            if isinstance(one, GreaterThan):
                self.above = one.value
            yield one

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"n": list(range(self.above + 1, 10))})


def test_pushed_filters_leak_into_the_next_query(spark: SparkSession) -> None:
    """Why our reader takes none. When this fails, Spark has mended it and filters can be taken."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        spark.dataSource.register(Ten)
        frame = spark.read.format("ten").load()
        assert frame.count() == 10
        assert frame.where("n > 5").count() == 4
        assert frame.count() == 4, "the right answer is 10"
        assert frame.where("n > 7").union(frame).count() == 4, "the right answer is 12"
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_the_time_that_a_cancelled_python_worker_goes_on_is_a_setting(spark: SparkSession) -> None:
    """Why jobs set it: none of them writes files that a worker would remove."""
    jvm = spark._jvm
    assert jvm is not None
    entry = jvm.org.apache.spark.internal.config.Python.PYTHON_TASK_KILL_TIMEOUT()
    assert (entry.key(), entry.defaultValueString()) == (KILL_TIMEOUT, "2s")


def test_option_names_arrive_in_lower_case(spark: SparkSession) -> None:
    """Why properties have a table that gives them their case back."""
    spark.dataSource.register(Echo)
    frame = spark.read.format("echo").option("delta.enableThing", "Yes").load()
    assert frame.columns == ["delta.enablething=Yes"]


class Echo(DataSource):
    """One column, named by the options."""

    @classmethod
    def name(cls) -> str:
        return "echo"

    def schema(self) -> StructType:
        return StructType().add("&".join(f"{name}={value}" for name, value in self.options.items()), "long")
