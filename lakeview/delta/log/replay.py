"""Action reconciliation: a log segment to the state of the table at its version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import polars as pl

from lakeview.delta.log.actions import DomainMetadata, Metadata, Protocol, Txn, table_protocol
from lakeview.delta.log.checkpoint_files import CheckpointPiece
from lakeview.delta.log.commits import Definition, mentions, only, parse_commit
from lakeview.delta.log.file_actions import (
    ALWAYS,
    IDENTITY,
    adds_among,
    backwards,
    columns_of,
    each_frame,
    newest_actions,
    not_replaced,
    once,
    rows_where,
    unseen,
    with_newer,
)
from lakeview.delta.log.log_segment import LogSegment, no_action
from lakeview.delta.log.segment_reader import SegmentReader, along_any_segment
from lakeview.delta.log.state import StatisticsReader, listing_columns, listing_with_statistics, with_statistics
from lakeview.delta.log.table_log import TableLog
from lakeview.model.column_values import moments
from lakeview.model.errors import CorruptTableError
from lakeview.model.frames import DOMAIN_METADATA, TRANSACTIONS
from lakeview.model.table_metadata import TableProtocol

_T = TypeVar("_T")
_PART, _SMALL_TAIL = 4096, 4 << 20
_RETAINED_COLUMNS = frozenset(
    {"size", "modified", "data_change", "partition_values", "records", "tags", "base_row_id",
     "default_row_commit_version"}
)  # fmt: skip
"""Columns that are cached for the next version: statistics are not, they are most of a log."""


class Replay(SegmentReader):
    """The state of a table at one version (delta protocol, Action Reconciliation).

    Each part is read on first touch: the newest protocol and metaData without any file action, the files by column.
    `earlier`: the state at an earlier version of the same log, all commits between still there: what it has loaded
    is carried on instead of being read from the checkpoint again. Where a checkpoint proves damaged the version is read
    along another segment, if the log has one. Safe to use from several threads.
    """

    def __init__(self, log: TableLog, segment: LogSegment, earlier: Replay | None = None) -> None:
        super().__init__(log, segment, earlier)
        self.listings: list[pl.DataFrame] = []  # loaded so far, for a later version to go on from

    # -- protocol and metadata

    @cached_property
    @along_any_segment
    def _protocol_and_metadata(self) -> tuple[Protocol, Metadata]:
        base = self._earlier
        start = self.segment.commits.start if base is None else base.version + 1
        protocol, metadata = self._newest(range(start, self.version + 1))
        if protocol is None or metadata is None:
            older: Definition = None, None
            if base is not None:
                older = base.protocol, base.metadata
            elif self._checkpoint is not None:
                older = self._checkpoint.definition
            protocol, metadata = protocol or older[0], metadata or older[1]
        if protocol is None:
            raise no_action("protocol", self.segment, self._log.storage.root)
        if metadata is None:
            raise no_action("metaData", self.segment, self._log.storage.root)
        if base is not None and not base.listings:
            self._earlier = None  # it has nothing more to give: no chain of states is retained
        return protocol, metadata

    def _newest(self, versions: range) -> Definition:
        """ "The latest protocol action seen wins", and so does the latest metaData: newest first, stop at both."""
        protocol: Protocol | None = None
        metadata: Metadata | None = None
        for version, definition in self._log.definitions(versions[::-1]):
            older = definition or self._log.definition(version)  # raises the error of one that is corrupt
            protocol, metadata = protocol or older[0], metadata or older[1]
            if protocol is not None and metadata is not None:
                break
        return protocol, metadata

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

    @cached_property
    def table_protocol(self) -> TableProtocol:
        """The protocol as the neutral value a Snapshot holds."""
        return table_protocol(self.protocol)

    # -- files

    @property
    def from_checkpoint(self) -> bool:
        """Whether some of the files may be listed in a checkpoint rather than in a commit."""
        return self._checkpoint is not None

    def adds(self, columns: Sequence[str]) -> pl.DataFrame:
        """FILE_ACTIONS of the live files: `key`, `path`, `deletion_vector`, `deleted_records` and these columns.

        `records` (physical rows) and `stats_parsed` may be asked for; the latter is there if a checkpoint has it.
        """
        names = [*ALWAYS, *columns]
        with self._lock:
            for listing in self.listings:
                if set(names) <= set(listing.columns):
                    return columns_of(listing, dict.fromkeys(names))
            while True:  # `along_any_segment` in place: each function on the way of a listing counts
                try:
                    earlier = self._carry_state(columns)
                    start = self.segment.commits.start if earlier is None else earlier[0].version + 1
                    tail = self._tail(columns, range(start, self.version + 1))
                    old = None if earlier is None else earlier[1]
                    if earlier is None and self._checkpoint is not None:
                        old = once(self._checkpoint.adds(columns, tail["path"]))
                    adds = with_newer(old, tail)
                    if _RETAINED_COLUMNS.issuperset(columns):
                        self._retain(adds)
                    return adds
                except CorruptTableError as error:
                    self.leave_checkpoint(error)

    def adds_with_statistics(self, columns: Sequence[str], reader: StatisticsReader) -> pl.DataFrame:
        """`adds`, and what the reader reads of them as the column `statistics`, which is not retained."""
        with self._lock:
            while True:  # as `adds`
                base = self._checkpoint
                try:
                    if self._has_small_tail and (base is None or base.is_small):
                        adds, listing = listing_with_statistics(self.adds(listing_columns(columns)), columns, reader)
                        self._retain(listing)
                        return adds
                    tail = self._tail(list(dict.fromkeys([*columns, "stats"])), self.segment.commits)
                    old = None if base is None else once(base.adds_with_statistics(columns, reader))
                    return with_newer(old, tail, with_statistics(adds_among(tail), columns, reader))
                except CorruptTableError as error:
                    self.leave_checkpoint(error)

    @along_any_segment
    def adds_and_removes(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """`adds([])` and `removes(["modified"])`; commits that neither has read yet are decoded once for both."""
        return self.adds_and_removes_after(self._tail(["modified"], self.segment.commits))

    def adds_and_removes_after(self, newest: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """As `adds_and_removes`. `newest`: what `small_tail` gave of `modified` and others; it is of one segment, so
        that an error of its checkpoint is raised: see `leave_checkpoint`."""
        with self._lock:
            if not self.listings and self._carry_state([]) is None:
                old = None if self._checkpoint is None else once(self._checkpoint.adds([]))
                self._retain(with_newer(old, newest.select(*ALWAYS, "added")))
            return self.adds([]), self._tombstones(["modified"], newest)

    def small_tail(self, columns: Sequence[str]) -> pl.DataFrame | None:
        """The newest action of each file that the commits after the checkpoint touch, as `each_action`; None where they
        are too many bytes to be decoded at once."""
        if not self._has_small_tail:
            return None
        return self._tail(columns, self.segment.commits)

    @property
    def _has_small_tail(self) -> bool:
        return sum(self._log.size(version) or 0 for version in self.segment.commits) <= _SMALL_TAIL

    def _retain(self, listing: pl.DataFrame) -> None:
        self.listings = [h for h in self.listings if not set(h.columns) <= set(listing.columns)] + [listing]
        self._earlier = None  # carried on: a table that is refreshed for weeks retains no chain of states

    @along_any_segment
    def pieces(self, columns: Sequence[str]) -> tuple[list[CheckpointPiece], pl.DataFrame]:
        """The two phases of a replay for other processes: the files of the checkpoint, and the newest action of each
        file that the commits after it touch (`added`, and as `adds`). A file of the checkpoint is live unless the
        second names it, by key and deletion vector."""
        pieces = [] if self._checkpoint is None else self._checkpoint.pieces()
        return pieces, self._tail(columns, self.segment.commits)

    def newest_first(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """`adds` in the reverse order, some files at a time. Commits are decoded in pieces, and nothing is retained."""
        keys = set[bytes]()
        while True:
            segment = self.segment
            try:
                yield from self._unseen(segment, columns, keys)
            except CorruptTableError as error:
                self.leave_checkpoint(error, segment)
            else:
                return

    def _unseen(self, segment: LogSegment, columns: Sequence[str], keys: set[bytes]) -> Iterator[pl.DataFrame]:
        """`newest_first` without the files whose keys were seen; theirs are added."""
        names, root = [*ALWAYS, *columns], self._log.storage.root
        for piece in self._log.each_piece(segment.commits[::-1], newest_first=True):
            with self._log.whole_lines():
                actions = newest_actions([piece], root, columns)
            actions = backwards(actions)
            yield rows_where(actions, unseen(actions, keys) & actions["added"]).select(names)
        if segment.checkpoint is not None:
            adds = backwards(once(self._log.checkpoint(segment.checkpoint).adds(columns)))
            yield from (rows_where(part, unseen(part, keys)).select(names) for part in adds.iter_slices(_PART))

    def each_action(self, columns: Sequence[str], newest: pl.DataFrame | None = None) -> Iterator[pl.DataFrame]:
        """Every add and remove that the segment records, some thousand at a time, older ones first and not reconciled:
        FILE_ACTIONS with `added` and these columns. A column that a checkpoint or a commit cannot have is left out.

        Nothing is retained: for who knows which of them count (`adds`, `removes`) and needs much of each. `newest`:
        what `small_tail` gave of these columns, in place of the commits.
        """
        if self._checkpoint is not None:
            for kind in ("add", "remove"):
                for frame in self._checkpoint.each_action(kind, columns):
                    yield frame.with_columns(pl.lit(kind == "add").alias("added"))
        if newest is not None:
            yield newest
            return
        pieces = self._log.each_piece(self.segment.commits)
        with self._log.whole_lines():
            commits = (parse_commit(data, version) for version, data in pieces)
            yield from each_frame(commits, self._log.storage.root, columns)

    def _carry_state(self, columns: Sequence[str]) -> tuple[Replay, pl.DataFrame] | None:
        """The state to go on from, and its listing; None to start from the checkpoint."""
        earlier = self._earlier
        if earlier is None:
            return None
        names = {*ALWAYS, *columns}
        listing = next((h for h in earlier.listings if names <= set(h.columns)), None)
        return None if listing is None else (earlier, listing.select([c for c in listing.columns if c in names]))

    @property
    def base(self) -> Replay | None:
        """What a later version should go on from: this state once it has loaded anything, else what it goes on from."""
        has_loaded = self.listings or (self._earlier is None and "_protocol_and_metadata" in self.__dict__)
        return self if has_loaded else self._earlier

    def _tail(self, columns: Iterable[str], versions: Sequence[int]) -> pl.DataFrame:
        """The newest action of each file that these commits touch."""
        with self._log.whole_lines():
            return newest_actions(self._log.each_piece(versions), self._log.storage.root, columns)

    @along_any_segment
    def removes(self, columns: Sequence[str] = ("size", "modified", "data_change")) -> pl.DataFrame:
        """FILE_ACTIONS of the tombstones: `key`, `path`, `deletion_vector` and these columns (modified: the deletion's
        time); `partition_values`, `vector` and the row tracking columns may be asked for."""
        return self._tombstones(columns, self._tail(columns, self.segment.commits))

    def _tombstones(self, columns: Sequence[str], tail: pl.DataFrame) -> pl.DataFrame:
        names = [*IDENTITY, "path", *columns]
        removes = rows_where(tail, ~tail["added"]).select(names)
        if self._checkpoint is None:
            return removes
        older = not_replaced(self._checkpoint.removes(columns), tail)
        return pl.concat([older.select(names), removes])

    # -- transactions and domains

    def _every(self, kind: str, attribute: str, base: Sequence[_T]) -> list[_T]:
        actions = list(base)
        with self._log.whole_lines():
            for version, data in self._log.each_piece(self.segment.commits):
                if mentions(data, kind):
                    actions += [action for _, action in only(attribute, [parse_commit(data, version)])]
        return actions

    @along_any_segment
    def transactions(self) -> pl.DataFrame:
        """TRANSACTIONS: "the latest version seen for a given appId wins", even if the number goes down."""
        base: list[Txn] = [] if self._checkpoint is None else self._checkpoint.txns()
        txns = self._every("txn", "txn", base)
        rows = {t.app_id: (t.app_id, t.version, t.last_updated) for t in txns}
        frame = pl.DataFrame(list(rows.values()), schema={**TRANSACTIONS, "last_updated": pl.Int64()}, orient="row")
        return frame.with_columns(moments("last_updated"))

    @along_any_segment
    def domain_metadata(self) -> pl.DataFrame:
        """DOMAIN_METADATA: the latest of each domain; a removed one is hidden."""
        base: list[DomainMetadata] = [] if self._checkpoint is None else self._checkpoint.domains()
        domains = self._every("domainMetadata", "domain_metadata", base)
        rows = [(d.domain, d.configuration) for d in {d.domain: d for d in domains}.values() if not d.removed]
        return pl.DataFrame(rows, schema=DOMAIN_METADATA, orient="row")
