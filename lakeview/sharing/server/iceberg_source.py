"""An Iceberg table to what the server asks of one: a table of plain Parquet files, where it is no more than that.

The protocol knows no Iceberg. What a reader of plain Parquet would get wrong (deletes, renamed columns, files of other
formats, types without a word in the protocol) is refused by name. Versions are snapshot ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import polars as pl

from lakeview.iceberg.metadata.locations import Locations
from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.scan.data_files import NAME_MAPPING
from lakeview.iceberg.table import IcebergTable
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.printable import count_text
from lakeview.model.schema import Schema
from lakeview.model.snapshot import milliseconds
from lakeview.model.type_tree import nodes
from lakeview.sharing.protocol.messages import FileFormat, MetadataLine, ProtocolLine, ResponseFormat
from lakeview.sharing.server.delta_lines import public_schema
from lakeview.sharing.server.lines import Row, parquet_row, servable, stats_texts
from lakeview.sharing.server.refusals import bad_parameter, not_recorded, unsupported_form
from lakeview.sharing.server.shared_version import FileIndex, SharedVersion
from lakeview.sharing.server.source import ChangeBatch, ChangeRange, Source

_WORDS = frozenset(
    {"string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp"}
)
"""The protocol's primitive types; decimals are allowed, too."""


class IcebergSource(Source):
    """An Iceberg table without deletes."""

    _table: IcebergTable

    def __init__(self, table: IcebergTable) -> None:
        self._table = table

    def require_shared(self, version: int, first: int, latest: int) -> None:
        """Refusal for a snapshot that did not lead to the current one, or came before the first that is shared.

        Ids say nothing of the order. What lies on a branch, or was rolled back, was never published.
        """
        line = [entry.snapshot_id for entry in reversed(ancestors(self._table.metadata, latest))]
        if version not in line:
            raise bad_parameter(f"version {version} is none of the versions that led to the latest, {latest}")
        if first and (first not in line or line.index(version) < line.index(first)):
            raise bad_parameter(f"You can only query table data since version {first}.")

    def require_files(self, version: int) -> None:
        """No refusal: snapshots that expired are gone with their files."""

    def times(self, first: int = 0) -> pl.DataFrame:
        """`version` and `timestamp` of what led to the current snapshot, oldest first, from a snapshot on."""
        metadata = self._table.metadata
        line = [entry.snapshot_id for entry in reversed(ancestors(metadata, metadata.current_snapshot_id))]
        if not line:
            raise bad_parameter("the table has no versions yet")
        if first:
            line = line[line.index(first) :] if first in line else []
        order = pl.DataFrame({"version": line}, schema={"version": pl.Int64()})
        times = self._table.history().select("version", "timestamp")
        return order.join(times, on="version", how="left", maintain_order="left")

    def changes(self, change_range: ChangeRange) -> Iterator[ChangeBatch]:
        """Refused: the protocol's changes are those of a Delta log."""
        if change_range.feed:
            raise not_recorded(change_range.start, change_range.end, change_range.start)
        raise unsupported_form("startingVersion is not supported for this table: it has no Delta log")

    def at(self, version: int) -> SharedVersion:
        """One version. 400 names what plain Parquet cannot tell."""
        snapshot = self._table.snapshot(version)
        if snapshot.delete_files.height:
            deletes = count_text(snapshot.delete_files.height, "delete file")
            raise unsupported_form(f"the table has {deletes}, which Delta Sharing cannot describe")
        _require_words(snapshot.schema)
        self._require_names(snapshot.schema)
        files = self._table.files(version, ["path", "size", "records", "deleted_records", "format"]).reverse()
        if other := sorted({f.lower() for f in files["format"]} - {"parquet"}):
            raise unsupported_form(f"the table has {', '.join(other)} files, which Delta Sharing cannot describe")

        def statistics(columns: list[str]) -> pl.DataFrame:
            return self._table.statistics(version, columns).reverse()

        def render(_: ResponseFormat, scheme: str) -> Iterator[Row]:
            texts = stats_texts(self._table.statistics(version).reverse(), snapshot.schema, files["records"])
            places = Locations(self.storage.root, self._table.metadata).resolve_all(files["path"])
            root = self.storage.root.rstrip("/") + "/"
            sizes = files["size"].fill_null(0)  # the protocol has no word for unknown
            for path, size, stats in zip(places, sizes, texts, strict=True):
                statistics = {} if stats is None else {"stats": stats}
                body = {"partitionValues": {}, "size": size, **statistics}
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

    def _require_names(self, schema: Schema) -> None:
        """400 if a column or field had another name once, or its name was another's: plain Parquet is read by names.

        Files that were imported may have other names too, and lack columns whose values their partitions have.
        """
        metadata = self._table.metadata
        mapping = metadata.properties.get(NAME_MAPPING)
        transforms = {f.transform.name for spec in metadata.specs.values() for f in spec.fields}
        if mapping is not None and ("identity" in transforms or not _maps_own_names(mapping, schema)):
            raise unsupported_form(
                "the table has a name mapping, by which its files may be read, and Delta Sharing has none"
            )
        names: dict[int, tuple[str, ...]] = {}
        numbers: dict[tuple[str, ...], int] = {}
        for entry in metadata.schemas.values():
            for node in nodes(entry.schema):
                number = None if node.field is None else node.field.id
                if number is None:
                    continue
                if names.setdefault(number, node.path) != node.path or numbers.setdefault(node.path, number) != number:
                    raise unsupported_form(
                        f"column {node.name} had another name once, which Delta Sharing cannot describe"
                    )


class _MappedField(msgspec.Struct, rename="kebab"):
    """A field of a name mapping."""

    names: list[str] = []
    field_id: int | None = None
    fields: list[_MappedField] | None = None


def _maps_own_names(mapping: str, schema: Schema) -> bool:
    """Whether a name mapping gives every field its id by its own name, and by no other: its files are read by names."""
    own = {node.path: node.field.id for node in nodes(schema) if node.field is not None}
    waiting: list[tuple[tuple[str, ...], _MappedField]] = []
    try:
        waiting += (((), field) for field in msgspec.json.decode(mapping, type=list[_MappedField]))
    except (msgspec.DecodeError, RecursionError):
        return False
    ids: dict[tuple[str, ...], int | None] = {}
    while waiting:
        above, field = waiting.pop()
        if len(field.names) > 1:
            return False
        for name in field.names:
            ids[*above, name] = field.field_id
            waiting += [((*above, name), f) for f in field.fields or ()]
    return {path: i for path, i in ids.items() if path in own or i in own.values()} == own


def _require_words(fields: Iterable[Field]) -> None:
    """400 for a type that the protocol has no word for, and for a column whose rows in files without it have a value:
    plain Parquet has none."""
    for node in nodes(fields):
        if isinstance(node.type, PrimitiveType) and node.type.name not in _WORDS:
            column = node.name
            raise unsupported_form(
                f"column {column} has the type {node.type.name}, for which this protocol has no word"
            )
        if node.field is not None and node.field.metadata.get("initial-default") is not None:
            raise unsupported_form(f"column {node.name} has an initial default, which Delta Sharing cannot describe")
