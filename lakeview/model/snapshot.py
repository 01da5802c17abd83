"""Snapshot: what a table is at one version, and the frames that describe a table.

A Snapshot is an immutable value. Identity, schema, protocol and properties are there at once; files and counts load
on first touch. Pickling fills them and drops the loader, so that no store handle and no credential travels.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import polars as pl

from lakeview.model.column_values import EPOCH, least_records, live_records
from lakeview.model.errors import InvalidRequestError
from lakeview.model.frames import DOMAIN_METADATA, FILES, RULES, TOMBSTONES, TRANSACTIONS
from lakeview.model.html import snapshot_html
from lakeview.model.schema import Schema
from lakeview.model.snapshot_sources import SnapshotLoader, SnapshotTable, as_declared
from lakeview.model.table_metadata import TableMetadata, TableProtocol


def milliseconds(moment: datetime) -> int:
    """An aware moment as milliseconds since 1970, cut; InvalidRequestError for a naive one or what is no datetime.

    In whole numbers: by way of a float some moments lose a millisecond.
    """
    is_moment = isinstance(moment, datetime)
    if not is_moment or moment.tzinfo is None or moment.utcoffset() is None:  # pandas' NaT has no utcoffset
        raise InvalidRequestError(
            f"the moment {moment} has no time zone" if is_moment else f"the moment {moment!r} is no datetime",
            fix="give an aware datetime, such as datetime(2026, 7, 15, 3, 25, tzinfo=UTC)",
            kind="naive-moment",
        )
    try:
        return (moment.astimezone(UTC) - EPOCH) // timedelta(milliseconds=1)
    except OverflowError as error:
        raise InvalidRequestError(
            f"the moment {moment} lies outside the years 1 to 9999 in UTC", fix="give one within them"
        ) from error


class Snapshot:
    """A table at one version.

    Made by a reader, or from frames for a test: `Snapshot(metadata, frames={"files": frame})`. Frames that are
    neither given nor loadable are empty. `counts`: tells num_files, size_bytes and num_records, or some of them, where
    the log knows them without a listing. `table`: what `scan`, `statistics` and `plan` read from; it is not pickled,
    and without it they raise InvalidRequestError (kind no-table). Safe to use from several threads.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        loader: SnapshotLoader | None = None,
        *,
        frames: Mapping[str, pl.DataFrame] | None = None,
        counts: Callable[[], Mapping[str, int | None]] | None = None,
        table: SnapshotTable | None = None,
    ) -> None:
        self._table = table
        self._metadata = metadata
        self._loader = loader
        self._known_counts = counts
        self._frames: dict[str, pl.DataFrame] = dict(frames or {})
        self._counts: dict[str, int | None] = {}
        self._lock = threading.RLock()

    @property
    def metadata(self) -> TableMetadata:
        """Everything known without files, as one value."""
        return self._metadata

    @property
    def format(self) -> str:
        """delta, iceberg or sharing."""
        return self._metadata.format

    @property
    def version(self) -> int:
        """The version (Iceberg: the snapshot id)."""
        return self._metadata.version

    @property
    def timestamp(self) -> datetime | None:
        """When this version was committed (aware, UTC), as time travel sees it; None where the log does not say."""
        return self._metadata.timestamp

    @property
    def schema(self) -> Schema:
        """The columns at this version."""
        return self._metadata.schema

    @property
    def partition_columns(self) -> list[str]:
        """Partition columns in the order declared."""
        return list(self._metadata.partition_columns)

    @property
    def properties(self) -> dict[str, str]:
        """Table properties as recorded."""
        return dict(self._metadata.properties or {})

    @property
    def protocol(self) -> TableProtocol:
        """What the table asks of readers and writers."""
        return self._metadata.protocol

    @property
    def id(self) -> str | None:
        """The table's unique id."""
        return self._metadata.id

    @property
    def name(self) -> str | None:
        """The name its owner gave it."""
        return self._metadata.name

    @property
    def description(self) -> str | None:
        """What its owner says about it."""
        return self._metadata.description

    @property
    def created(self) -> datetime | None:
        """When the table was created (aware, UTC)."""
        return self._metadata.created

    @property
    def location(self) -> str:
        """The address it was opened from, without credentials."""
        return self._metadata.address

    @property
    def data_format(self) -> str:
        """The encoding of data files: parquet."""
        return self._metadata.data_format

    @property
    def loaded_bytes(self) -> int:
        """What the frames that were loaded by now take, about."""
        with self._lock:
            return sum(int(frame.estimated_size()) for frame in self._frames.values())

    @property
    def files(self) -> pl.DataFrame:
        """FILES: one row a live data file."""
        return self._frame("files", FILES)

    @property
    def delete_files(self) -> pl.DataFrame:
        """FILES: files that hold deletes (Iceberg); empty elsewhere."""
        return self._frame("delete_files", FILES)

    @property
    def tombstones(self) -> pl.DataFrame:
        """TOMBSTONES (Delta); empty elsewhere."""
        return self._frame("tombstones", TOMBSTONES)

    @property
    def transactions(self) -> pl.DataFrame:
        """TRANSACTIONS (Delta); empty elsewhere."""
        return self._frame("transactions", TRANSACTIONS)

    @property
    def domain_metadata(self) -> pl.DataFrame:
        """DOMAIN_METADATA (Delta); empty elsewhere."""
        return self._frame("domain_metadata", DOMAIN_METADATA)

    @property
    def rules(self) -> pl.DataFrame:
        """RULES: constraints, defaults, generated and identity columns, clustering and the like, as declared."""
        return self._frame("rules", RULES)

    @property
    def num_files(self) -> int:
        """Live data files, exact."""
        return cast("int", self._count("num_files"))

    @property
    def size_bytes(self) -> int | None:
        """Bytes of the live data files, exact; None when the log records a size that no file has."""
        return self._count("size_bytes")

    @property
    def num_records(self) -> int | None:
        """Live rows, exact; None when a file's count or its deletes are unknown."""
        return self._count("num_records")

    def scan(self) -> pl.LazyFrame:
        """The rows, lazily; filters prune files."""
        table = self._read_from()
        return table.scan(as_declared(table, self.version))

    def statistics(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """STATISTICS of these columns, or of all."""
        table = self._read_from()
        return table.statistics(as_declared(table, self.version), columns)

    def plan(self, where: str | pl.Expr) -> pl.DataFrame:
        """PLAN: which files a filter would read, and why not the others."""
        table = self._read_from()
        return table.plan(where, as_declared(table, self.version))

    def _read_from(self) -> SnapshotTable:
        if self._table is None:
            raise InvalidRequestError(
                f"this snapshot of {self.location} was unpickled or made from frames: it has no table to read from",
                fix=f"open the table again: lv.open_table(...).snapshot({self.version})",
                kind="no-table",
            )
        return self._table

    def _frame(self, name: str, empty: pl.Schema) -> pl.DataFrame:
        with self._lock:
            if name not in self._frames:
                loader = self._loader
                if loader is None:
                    self._frames[name] = pl.DataFrame(schema=empty)
                else:
                    self._frames[name] = loader.files(None) if name == "files" else getattr(loader, name)()
            return self._frames[name]

    def _count(self, name: str) -> int | None:
        with self._lock:
            if name not in self._counts:
                self._counts.update(self._load_counts(name))
            return self._counts[name]

    def _load_counts(self, name: str) -> dict[str, int | None]:
        if "files" not in self._frames and self._known_counts is not None:
            totals, self._known_counts = dict(self._known_counts()), None
            if name in totals:
                return totals
        # the log's cheapest listing: no statistics are read for a size
        columns = ["size", "records", "deleted_records"] if name == "num_records" else ["size"]
        files = self.files if "files" in self._frames or self._loader is None else self._loader.files(columns)
        counts: dict[str, int | None] = {"num_files": files.height, "size_bytes": _total(files["size"])}
        if "records" in files.columns:
            counts["num_records"] = _total(files.select(live_records()).to_series())
        return counts

    def __getstate__(self) -> dict[str, Any]:
        for name in ("files", "delete_files", "tombstones", "transactions", "domain_metadata", "rules"):
            getattr(self, name)
        return {"metadata": self._metadata, "frames": self._frames}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["metadata"], frames=state["frames"])  # type: ignore[misc]  # the one way to fill the slots

    def __repr__(self) -> str:
        return f"Snapshot({self.location!r}, version={self.version}, columns={len(self.schema)})"

    def _repr_html_(self) -> str:
        rows = self.num_records
        least = least_records(self.files, self.delete_files) if rows is None else None
        return snapshot_html(self._metadata, self.num_files, self.size_bytes, rows, least)


def _total(values: pl.Series) -> int | None:
    """A sum, None where a part is unknown; in 128 bits, as many great numbers would turn negative in 64."""
    return None if values.has_nulls() else int(values.cast(pl.Int128).sum())
