"""A Delta table to what the server asks of one: the log's own actions, written as the protocol wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import polars as pl

from lakeview.delta.sharing import ChangeLog, DeltaTable, check_type_changes, file_features
from lakeview.model.schema import Schema
from lakeview.model.snapshot import milliseconds
from lakeview.sharing.protocol.messages import ResponseFormat
from lakeview.sharing.server.delta_changes import ChangeLines
from lakeview.sharing.server.delta_lines import add_row, heads
from lakeview.sharing.server.lines import Row, stats_texts
from lakeview.sharing.server.refusals import bad_parameter, unsupported_form
from lakeview.sharing.server.shared_version import FileIndex, SharedVersion
from lakeview.sharing.server.source import ChangeBatch, ChangeRange, Source

_COLUMNS = [
    "size", "modified", "data_change", "partition_values", "stats", "tags", "base_row_id",
    "default_row_commit_version", "vector", "records",
]  # fmt: skip


class DeltaSource(Source):
    """A Delta table."""

    _table: DeltaTable

    def __init__(self, table: DeltaTable, *, tell_sizes: bool = False) -> None:
        self._table = table
        self._log = ChangeLog(table)
        self._tell_sizes = tell_sizes

    def times(self, first: int = 0) -> pl.DataFrame:
        """`version` and `timestamp` that time travel uses, oldest first, from a version on."""
        return self._log.times().filter(pl.col("version") >= first)

    def require_shared(self, version: int, first: int, latest: int) -> None:
        """Refusal outside of what is shared."""
        if version > latest:
            raise bad_parameter(f"version {version} is after the latest available version {latest}")
        if version < first:
            raise bad_parameter(f"You can only query table data since version {first}.")

    def require_files(self, version: int) -> None:
        """Refusal if data files of a past version are gone."""
        latest = self._table.latest_version
        if version == latest:
            return
        past = self._table.files(version, ["path"])["path"]
        now = self._table.files(latest, ["path"])["path"]
        doubtful = past.filter(~past.is_in(now.implode()))
        if doubtful.is_empty():
            return
        if doubtful.len() <= 16:
            are_missing = not all(self.storage.exists(path) for path in doubtful)
        else:
            are_missing = not doubtful.is_in(self.storage.names().implode()).all()
        if are_missing:
            raise bad_parameter(f"table files missing: files of version {version} were removed by a vacuum")

    # -- one version

    def at(self, version: int) -> SharedVersion:
        """One version."""
        state = self._table.state(version)
        snapshot = self._table.snapshot(version)
        check_type_changes(snapshot.schema)
        if snapshot.data_format.lower() != "parquet":
            raise unsupported_form(f"Unsupported Delta Table Properties: data files of format {snapshot.data_format}")
        features = state.protocol.reader_features or ()
        vectors = "deletionVectors" in features and state.adds([])["deletion_vector"].is_not_null().any()

        def statistics(columns: list[str] | None = None) -> pl.DataFrame:
            return self._table.statistics(version, columns).reverse()

        def render(response_format: ResponseFormat, scheme: str) -> Iterator[Row]:
            parts = state.newest_first(_COLUMNS)
            if state.from_checkpoint and not any(f.physical_name for f in snapshot.schema):
                parts = _with_texts(parts, statistics, snapshot.schema)
            for adds in parts:
                yield from (add_row(row, response_format, scheme) for row in adds.iter_rows(named=True))

        sizes = (snapshot.num_files, snapshot.size_bytes) if self._tell_sizes else None
        return SharedVersion(
            version,
            None if snapshot.timestamp is None else milliseconds(snapshot.timestamp),
            snapshot.schema,
            file_features(snapshot.protocol, snapshot.properties, snapshot.schema, vectors=bool(vectors)),
            heads(state.protocol, state.metadata, snapshot.schema, sizes),
            FileIndex(
                lambda: state.adds(["records"]).reverse().select("path", "records", "deleted_records"),
                lambda: self._partitions(version, snapshot.partition_columns),
                statistics,
            ),
            render,
        )

    def _partitions(self, version: int, columns: list[str]) -> dict[str, pl.Series]:
        if not columns:
            return {}
        values = self._table.files(version, ["partition"])["partition"].struct.unnest().reverse()
        return {name: values[name] for name in columns}

    # -- changes

    def features_between(self, start: int, end: int, *, feed: bool) -> frozenset[str]:
        """Reader features that the changes of a range need, in lower case: also those that neither end needs, such as a
        column mapping that was dropped again, or a deletion vector that a compaction removed."""
        features: frozenset[str] = frozenset()
        for protocol, metadata, schema in self._log.definitions(start, end):
            features |= file_features(protocol, metadata.properties, schema, vectors=False)
        return features | {"deletionvectors"} if self._log.has_vectors(start, end, feed=feed) else features

    def changes(self, change_range: ChangeRange) -> Iterator[ChangeBatch]:
        """The lines of a range of versions, oldest first."""
        return ChangeLines(self._log, change_range).batches()


def _with_texts(
    parts: Iterator[pl.DataFrame], statistics: Callable[[], pl.DataFrame], schema: Schema
) -> Iterator[pl.DataFrame]:
    """Live files, newest first, with statistics as text: written out where a checkpoint has only structs of them."""
    every = cache(statistics)
    at = 0
    for adds in parts:
        part = every().slice(at, adds.height) if adds["stats"].has_nulls() else None
        at += adds.height
        if part is None or not part["_path"].equals(adds["path"]):
            yield adds
            continue
        without = adds["stats"].is_null()
        texts = stats_texts(part.filter(without), schema, adds["records"].filter(without))
        stats = pl.Series("stats", texts, dtype=pl.String)
        yield adds.with_columns(adds["stats"].scatter(without.arg_true(), stats))
