"""A DataFrame to a commit of a table: by Spark's own Parquet writer where it can, else by `format("lakeview")`."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from lakeview.model.errors import InvalidRequestError
from lakeview.spark.failures import lakeview_errors
from lakeview.spark.native_writer import write_natively
from lakeview.spark.option_values import as_spark_options
from lakeview.spark.options import WriteOptions
from lakeview.spark.stream_writer import sink
from lakeview.spark.writer import LakeviewWriter
from lakeview.storage.access import StoreAccess

_MODES: Mapping[str, tuple[bool, dict[str, str]]] = {
    "append": (False, {}),
    "overwrite": (True, {}),
    "error": (False, {"ifExists": "error"}),
    "errorifexists": (False, {"ifExists": "error"}),
    "ignore": (False, {"ifExists": "ignore"}),
}
"""Spark's modes to whether rows are replaced, and what else that takes."""


def write(
    frame: DataFrame,
    address: str,
    mode: str = "error",
    *,
    native: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    **options: object,
) -> None:
    """Write the rows of a DataFrame to a table, by one commit; `mode` and `options` as Spark and `format("lakeview")`
    have them (`partitionBy="day"`, `replaceWhere="day > DATE '2026-01-01'"`, `**{"delta.appendOnly": True}`).

    Spark itself writes the files of local Delta tables, if no value has to be converted and no rule of the table has to
    be evaluated but NOT NULL; else, and with `native` false, Python workers do. The rows, the statistics and the commit
    are the same. Errors are those of lakeview, as of `lakeview_errors`.
    """
    if str(mode).lower() not in _MODES:
        raise InvalidRequestError(f"{mode!r} is no mode", fix=f"give one of {', '.join(_MODES)}", place="mode")
    overwrite, if_exists = _MODES[mode.lower()]
    access = as_spark_options(StoreAccess(storage_options or {}), writing=True)
    texts = {name: _text(value) for name, value in options.items() if value is not None} | if_exists | access
    write_options = WriteOptions.parse({**texts, "path": address}, overwrite=overwrite)
    with lakeview_errors():
        if native:
            writer = sink(write_options, frame.schema, overwrite=overwrite)
            if isinstance(writer, LakeviewWriter) and (writer.is_ignored or write_natively(frame, writer)):
                return
        rows = frame.write.format("lakeview").mode("overwrite" if overwrite else "append")
        rows.options(**texts).save(address)


def _text(value: object) -> str:
    """An option as Spark hands it over; names as one list."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
