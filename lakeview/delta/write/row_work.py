"""A part of an operation on rows, for another process: which files, what becomes of their rows, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lakeview.delta.log.actions import AddCDCFile, AddFile, RemoveFile
from lakeview.delta.write.context import WriteContext
from lakeview.delta.write.deletion_vectors import VectorChange
from lakeview.delta.write.file_changes import FileChanges, Key
from lakeview.delta.write.moved_rows import Rearrangement
from lakeview.delta.write.row_changes import RowChanges
from lakeview.model.clock import Clock, system_clock
from lakeview.storage import Storage
from lakeview.storage.access import NO_OPTIONS, StoreAccess


@dataclass
class RowOutcome:
    """What one part did: the actions of FileChanges, and what a transaction needs to follow other commits with them.

    `paths`: of the files that were written, decoded; `counts`: in the words of operationMetrics; `whole_adds`: those of
    `adds` whose rows are all new.
    """

    adds: list[AddFile]
    removes: dict[Key, RemoveFile]
    changes: list[AddCDCFile]
    paths: list[str]
    vectors: list[VectorChange]
    counts: Counter[str]
    moves: list[Rearrangement] = field(default_factory=list)
    whole_adds: list[AddFile] = field(default_factory=list)


@dataclass(frozen=True)
class RowWork:
    """How the rows of a table are changed, as a value that can travel to another process.

    `vectors`: rows may go by deletion vectors; `feed`: changes are recorded; `roots`: where files may lie beside the
    table's own folder; `access`: what opens its store.
    """

    context: WriteContext
    vectors: bool
    feed: bool
    roots: tuple[str, ...] = ()
    access: StoreAccess = NO_OPTIONS

    def storage(self) -> Storage:
        """The store of the table, opened in this process."""
        return self.access.open(self.context.root, self.roots)

    def run(
        self, do: Callable[[RowChanges, FileChanges], Sequence[Rearrangement]], clock: Clock = system_clock
    ) -> RowOutcome:
        """Do a part of an operation. What it wrote is removed again if it fails."""
        storage = self.storage()
        changes = FileChanges(storage)
        try:
            with RowChanges(self.context, changes, storage, clock, vectors=self.vectors, feed=self.feed) as rows:
                moves = list(do(rows, changes))
                vectors = rows.finish()
        except BaseException:
            changes.discard()
            raise
        return RowOutcome(changes.adds, changes.removes, changes.changes, changes.paths, vectors, rows.counts, moves)
