"""The options of a write to the writer of the format that the table has."""

from collections.abc import Mapping

from pyspark.sql.types import StructType

from lakeview.model.errors import InvalidRequestError
from lakeview.spark.iceberg_writer import IcebergWriter, iceberg_table
from lakeview.spark.options import WriteOptions
from lakeview.spark.writer import LakeviewWriter

_OF_DELTA: Mapping[str, str] = {
    "partition_by": "partitionBy", "merge_schema": "mergeSchema", "operation": "operation", "user_name": "userName",
    "user_metadata": "userMetadata", "data_change": "dataChange", "statistics": "statistics",
    "properties": "delta.*", "replace_files": "replaceFiles", "overwrite_schema": "overwriteSchema",
}  # fmt: skip
"""Options, by their field, that ask for what a snapshot of Iceberg does not have or its writer does not do."""

_OF_ICEBERG: Mapping[str, str] = {
    "without_catalog": "withoutCatalog", "relocate": "relocate", "snapshot_properties": "snapshot-property.*",
}  # fmt: skip


def sink(options: WriteOptions, schema: StructType, *, overwrite: bool) -> LakeviewWriter | IcebergWriter:
    """The writer of rows that have these columns; of a Delta table where there is none yet.

    InvalidRequestError for options of the other format, and what the writers raise.
    """
    table = iceberg_table(options)
    check_options(options, is_iceberg=table is not None)
    if table is None:
        return LakeviewWriter(options, schema, overwrite=overwrite)
    return IcebergWriter(table, options, schema, overwrite=overwrite)


def check_options(options: WriteOptions, *, is_iceberg: bool) -> None:
    """InvalidRequestError for options of the format that the table does not have."""
    unset = WriteOptions(options.path)
    others = _OF_DELTA if is_iceberg else _OF_ICEBERG
    option = next((word for name, word in others.items() if getattr(options, name) != getattr(unset, name)), None)
    if option is None:
        return
    if is_iceberg:
        raise InvalidRequestError(
            f"{option} is an option for Delta tables, and {options.path} is an Iceberg table",
            fix="leave it out",
            place=option,
            kind="option-of-delta",
        )
    raise InvalidRequestError(
        f"{option} is an option for Iceberg tables, and there is none at {options.path}",
        fix="leave it out, or make the table first",
        place=option,
        kind="option-of-iceberg",
    )
