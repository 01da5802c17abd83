"""An Iceberg table to what the server asks of one: a table of plain Parquet files, where it is no more than that.

The protocol knows no Iceberg. What a reader of plain Parquet would get wrong (deletes, renamed columns, files of other
formats, types without a word in the protocol) is refused by name. Versions are snapshot ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import polars as pl

from lakeview.delta.sharing import nested_structs
from lakeview.iceberg.metadata.locations import Locations
from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.metadata.types import struct_fields
from lakeview.iceberg.table import IcebergTable
from lakeview.model.schema import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.snapshot import milliseconds
from lakeview.sharing.protocol.messages import FileFormat, MetadataLine, ProtocolLine, ResponseFormat
from lakeview.sharing.server.delta_lines import public_schema
from lakeview.sharing.server.lines import Row, parquet_row, servable
from lakeview.sharing.server.pruning import FileIndex
from lakeview.sharing.server.refresh import latest_of
from lakeview.sharing.server.refusals import after_latest, bad_parameter, before_earliest, not_recorded, unsupported
from lakeview.sharing.server.shared_version import SharedVersion
from lakeview.sharing.server.source import ChangeBatch, ChangeRange
from lakeview.sharing.server.stats_text import stats_texts
from lakeview.storage import Storage

_WORDS = frozenset(
    {"string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp"}
)
"""The protocol's primitive types; decimals come beside."""


class IcebergSource:
    """An Iceberg table without deletes. Implements `lakeview.sharing.server.source.Source`."""

    def __init__(self, table: IcebergTable) -> None:
        self._table = table

    @property
    def storage(self) -> Storage:
        """Where its files lie."""
        return self._table.storage

    def refresh(self) -> int:
        """Look for newer versions; the latest."""
        return latest_of(self._table)

    def version_at(self, moment: datetime) -> int:
        """The version that was the latest at a moment. Refusal outside the table's life."""
        times = self._times()
        first, last = times["timestamp"][0], times["timestamp"][-1]
        if moment < first:
            raise before_earliest(first)
        if moment > last:
            raise after_latest(last)
        return int(times.filter(pl.col("timestamp") <= moment)["version"][-1])

    def first_from(self, moment: datetime, first: int) -> int:
        """The earliest version at or after a moment, and not before another. Refusal after the latest."""
        times = self._times()
        since = times["version"].index_of(first) if first else 0
        later = times[times.height if since is None else since :].filter(pl.col("timestamp") >= moment)
        if later.is_empty():
            raise after_latest(times["timestamp"][-1])
        return int(later["version"][0])

    def require_since(self, moment: datetime, first: int) -> None:
        """Nothing to refuse: there are no changes from any version on."""

    def require_shared(self, version: int, first: int, latest: int) -> None:
        """Refusal for a snapshot that did not lead to the current one, or came before the first that is shared.

        Ids say nothing of the order. What lies on a branch, or was rolled back, was never published.
        """
        line = [entry.snapshot_id for entry in reversed(ancestors(self._table.metadata, latest))]
        if version not in line:
            raise bad_parameter(f"version {version} is none of the versions that led to the latest, {latest}")
        if first and (first not in line or line.index(version) < line.index(first)):
            raise bad_parameter(f"You can only query table data since version {first}.")

    def _times(self) -> pl.DataFrame:
        """`version` and `timestamp` of what led to the current snapshot, oldest first."""
        metadata = self._table.metadata
        line = [entry.snapshot_id for entry in reversed(ancestors(metadata, metadata.current_snapshot_id))]
        times = self._table.history().select("version", "timestamp")
        if not line:
            raise bad_parameter("the table has no versions yet")
        order = pl.DataFrame({"version": line}, schema={"version": pl.Int64()})
        return order.join(times, on="version", how="left", maintain_order="left")

    def require_files(self, version: int) -> None:
        """Nothing to refuse: snapshots that expired are gone with their files."""

    def needed_between(self, start: int, end: int, *, feed: bool) -> frozenset[str]:  # noqa: ARG002 (of no range)
        """None: there are no changes."""
        return frozenset()

    def changes(self, wanted: ChangeRange) -> Iterator[ChangeBatch]:
        """Refused: the protocol's changes are those of a Delta log."""
        if wanted.feed:
            raise not_recorded(wanted.start, wanted.end, wanted.start)
        raise unsupported("startingVersion is not supported for this table: it has no Delta log")

    def at(self, version: int) -> SharedVersion:
        """One version. 400 names what plain Parquet cannot tell."""
        snapshot = self._table.snapshot(version)
        if snapshot.delete_files.height:
            raise unsupported(
                f"the table has {snapshot.delete_files.height} delete files, which this protocol cannot tell"
            )
        for field in snapshot.schema:
            _require_word(field.name, field.type)
        self._require_names()
        _require_no_defaults(snapshot.schema.fields)
        files = self._table.files(version, ["path", "size", "records", "deleted_records", "format"]).reverse()
        if other := sorted({f.lower() for f in files["format"]} - {"parquet"}):
            raise unsupported(f"the table has {', '.join(other)} files, which this protocol cannot tell")

        def statistics(columns: list[str]) -> pl.DataFrame:
            return self._table.statistics(version, columns).reverse()

        def render(_: ResponseFormat, scheme: str) -> Iterator[Row]:
            texts = stats_texts(self._table.statistics(version).reverse(), snapshot.schema, files["records"])
            places = Locations(self.storage.root, self._table.metadata).resolve_all(files["path"])
            root = self.storage.root.rstrip("/") + "/"
            sizes = files["size"].fill_null(0)  # the protocol has no word for unknown
            for path, size, stats in zip(places, sizes, texts, strict=True):
                known = {} if stats is None else {"stats": stats}
                body = {"partitionValues": {}, "size": size, **known}
                yield parquet_row("file", servable(path.removeprefix(root)), body, scheme)

        # partition columns are columns of the files as well: the protocol need not know of partitions
        head = MetadataLine(
            id=snapshot.id,
            name=snapshot.name,
            description=snapshot.description,
            format=FileFormat(),
            schema_string=public_schema(snapshot.schema),
            partition_columns=[],
        )
        return SharedVersion(
            version,
            None if snapshot.timestamp is None else milliseconds(snapshot.timestamp),
            snapshot.schema,
            frozenset(),
            {ResponseFormat.PARQUET: (ProtocolLine(min_reader_version=1), head)},
            FileIndex(lambda: files.select("path", "records", "deleted_records"), dict, statistics),
            render,
        )

    def _require_names(self) -> None:
        """400 if a column had another name once, or its name was another column's: plain Parquet is read by names."""
        names: dict[int, tuple[str, ...]] = {}
        numbers: dict[tuple[str, ...], int] = {}
        for recorded in self._table.metadata.schemas.values():
            for number, (path, field) in struct_fields(recorded.schema).items():
                if names.setdefault(number, path) != path or numbers.setdefault(path, number) != number:
                    raise unsupported(f"column {field.name} had another name once, which this protocol cannot tell")


def _require_no_defaults(fields: tuple[Field, ...]) -> None:
    """400 if rows of files without a column have a value in it: plain Parquet has none."""
    for field in fields:
        if field.metadata.get("initial-default") is not None:
            raise unsupported(f"column {field.name} has an initial default, which this protocol cannot tell")
        for struct in nested_structs(field.type):
            _require_no_defaults(struct.fields)


def _require_word(column: str, type_: DataType) -> None:
    match type_:
        case StructType(fields):
            for field in fields:
                _require_word(f"{column}.{field.name}", field.type)
        case ArrayType(element):
            _require_word(column, element)
        case MapType(key, value):
            _require_word(column, key)
            _require_word(column, value)
        case PrimitiveType(name) if name not in _WORDS:
            raise unsupported(f"column {column} has the type {name}, for which this protocol has no word")
        case DecimalType() | PrimitiveType():
            return
