"""Action reconciliation: a log segment to the state of the table at its version."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property

import polars as pl

from lakeview.delta.log.actions import Metadata, Protocol
from lakeview.delta.log.commits import FILE_ACTIONS, Commit, file_actions, only
from lakeview.delta.log.log_segment import LogSegment
from lakeview.delta.log.table_log import TableLog
from lakeview.errors import CorruptTableError
from lakeview.snapshot import DOMAIN_METADATA, TRANSACTIONS, TableProtocol, moments

_KEY = ["key", "deletion_vector"]


class Replay:
    """The state of a table at one version (delta protocol, Action Reconciliation).

    Each part is read on first touch: the newest protocol and metaData without any file action, the files by column.
    Safe to use from several threads.
    """

    def __init__(self, log: TableLog, segment: LogSegment) -> None:
        self._log = log
        self._lock = threading.RLock()
        self.segment = segment
        self.version = segment.version
        self._checkpoint = None if segment.checkpoint is None else log.checkpoint(segment.checkpoint)

    @cached_property
    def _commits(self) -> list[Commit]:
        return self._log.commits(self.segment.commits["version"])

    @cached_property
    def _protocol_and_metadata(self) -> tuple[Protocol, Metadata]:
        with self._lock:
            protocol: Protocol | None = None
            metadata: Metadata | None = None
            # "The latest protocol action seen wins", and so does the latest metaData: newest first, stop at both
            for version in reversed(self.segment.commits["version"].to_list()):
                if protocol is not None and metadata is not None:
                    break
                data = self._log.commit_bytes(version)
                if b'"protocol"' in data or b'"metaData"' in data:
                    commit = self._log.commit(version)
                    protocol = protocol or next((a for _, a in only("protocol", [commit])), None)
                    metadata = metadata or next((a for _, a in only("meta_data", [commit])), None)
            if self._checkpoint is not None and (protocol is None or metadata is None):
                older_protocol, older_metadata = self._checkpoint.protocol_and_metadata()
                protocol, metadata = protocol or older_protocol, metadata or older_metadata
            if protocol is None:
                raise self._missing("protocol")
            if metadata is None:
                raise self._missing("metaData")
            return protocol, metadata

    def _missing(self, action: str) -> CorruptTableError:
        where = "its commits" if self._checkpoint is None else f"checkpoint {self._checkpoint.version} and what follows"
        return CorruptTableError(
            f"version {self.version} of {self._log.storage.root} has no {action} action: {where} hold none",
            fix="restore the first commit or a whole checkpoint from a backup",
            place=action,
            kind="missing-protocol" if action == "protocol" else "missing-metadata",
        )

    @property
    def protocol(self) -> Protocol:
        """The protocol in force. CorruptTableError if the log has none."""
        return self._protocol_and_metadata[0]

    @property
    def metadata(self) -> Metadata:
        """The metadata in force. CorruptTableError if the log has none."""
        return self._protocol_and_metadata[1]

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return self.metadata.properties

    @property
    def table_protocol(self) -> TableProtocol:
        """The protocol as the neutral value a Snapshot holds."""
        return table_protocol(self.protocol)

    @cached_property
    def _tail(self) -> pl.DataFrame:
        """The newest action of each file that the commits after the checkpoint touch."""
        with self._lock:
            actions = file_actions(self._commits, self._log.storage.root)
            return actions.unique(_KEY, keep="last", maintain_order=True)

    def adds(self, columns: Sequence[str]) -> pl.DataFrame:
        """FILE_ACTIONS of the live files: `key`, `path`, `deletion_vector`, `deleted_records` and these columns.

        `stats_parsed` and `parsed_records` may be asked for; they are there if a checkpoint has them.
        """
        own = [c for c in FILE_ACTIONS.names() if c in {*_KEY, "path", "deleted_records", *columns}]
        with self._lock:
            live = self._tail.filter("added").select(own)
            if self._checkpoint is None:
                return live
            old = self._checkpoint.adds([c for c in columns if c not in {"version", "added"}])
            # a newer add or remove of the same key takes the checkpoint's place
            kept = old.join(self._tail.select(_KEY), on=_KEY, how="anti", nulls_equal=True)
            return pl.concat([kept.select(pl.exclude("added", "version")), live], how="diagonal")

    def removes(self, columns: Sequence[str] = ("size", "modified", "data_change")) -> pl.DataFrame:
        """FILE_ACTIONS of the tombstones: `key`, `path`, `deletion_vector` and these columns (modified: the deletion's
        time); `partition_values`, `vector` and the row tracking columns may be asked for."""
        wanted = columns
        columns = [*_KEY, "path", *wanted]
        with self._lock:
            gone = self._tail.filter(~pl.col("added")).select(columns)
            if self._checkpoint is None:
                return gone
            kept = self._checkpoint.removes(wanted).join(self._tail.select(_KEY), on=_KEY, how="anti", nulls_equal=True)
            return pl.concat([kept.select(columns), gone])

    def transactions(self) -> pl.DataFrame:
        """TRANSACTIONS: "the latest version seen for a given appId wins", even if the number goes down."""
        with self._lock:
            txns = [] if self._checkpoint is None else self._checkpoint.txns()
            txns += [txn for _, txn in only("txn", self._commits)]
        rows = {t.app_id: (t.app_id, t.version, t.last_updated) for t in txns}
        frame = pl.DataFrame(list(rows.values()), schema={**TRANSACTIONS, "last_updated": pl.Int64()}, orient="row")
        return frame.with_columns(moments("last_updated"))

    def domain_metadata(self) -> pl.DataFrame:
        """DOMAIN_METADATA: the latest of each domain; a removed one is hidden."""
        with self._lock:
            domains = [] if self._checkpoint is None else self._checkpoint.domains()
            domains += [domain for _, domain in only("domain_metadata", self._commits)]
        rows = {d.domain: d for d in domains}
        return pl.DataFrame(
            [(d.domain, d.configuration) for d in rows.values() if not d.removed], schema=DOMAIN_METADATA, orient="row"
        )


def table_protocol(protocol: Protocol) -> TableProtocol:
    """A protocol action as the neutral value a Snapshot holds."""
    return TableProtocol(
        protocol.min_reader_version,
        protocol.min_writer_version,
        None if protocol.reader_features is None else tuple(protocol.reader_features),
        None if protocol.writer_features is None else tuple(protocol.writer_features),
    )
