"""The checkpoints of a log, and which of them are read: sound ones, where there is a choice."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import TypeVar

from lakeview.delta.log.checkpoints import Checkpoint
from lakeview.delta.log.listing import LogListing
from lakeview.delta.log.log_segment import CheckpointFiles, LogSegment
from lakeview.delta.log.paths import SIDECARS
from lakeview.delta.log.state import LastListing
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import CorruptTableError, NotATableError, VersionNotFoundError
from lakeview.storage import Storage
from lakeview.storage.byte_cache import SmallFiles

_T = TypeVar("_T")

_NO_SEGMENT = (CorruptTableError, NotATableError, VersionNotFoundError)
"""Why no segment leads to a version: `build_segment`."""
_SMALL_FILES_BYTES = 8 << 20


class LogCheckpoints(LogListing):
    """The listing of a log, and the readers of its checkpoints. Checkpoints that proved damaged are remembered."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._small_files = SmallFiles(_SMALL_FILES_BYTES, len) if storage.remote else None
        self._checkpoints: dict[CheckpointFiles, Checkpoint] = {}
        self._sound: dict[CheckpointFiles, bool] = {}
        self._last_listing = LastListing()

    def checkpoint(self, files: CheckpointFiles) -> Checkpoint:
        """The reader of one checkpoint."""
        with self._lock:
            if files not in self._checkpoints:
                self._checkpoints[files] = Checkpoint(self.storage, files, self._last_listing, self._small_files)
            return self._checkpoints[files]

    def segment(self, version: int, unusable: Collection[CheckpointFiles] = ()) -> LogSegment:
        """As `LogListing`, along a checkpoint that is not known as damaged, and of several of one version a sound one;
        where all ways lead along damaged ones, the one that a sound log would have."""
        while True:
            with self._lock:
                damaged_checkpoints = {*unusable, *(files for files, sound in self._sound.items() if not sound)}
            try:
                segment = super().segment(version, damaged_checkpoints)
            except _NO_SEGMENT:
                if not damaged_checkpoints:
                    raise
                return super().segment(version)
            base = segment.checkpoint
            if base is None or len(self._same_version(base)) < 2 or self._is_sound(base):
                return segment

    def note_damage(self, files: CheckpointFiles) -> None:
        """Read no version along a checkpoint that proved damaged when it was read, as long as there is another way."""
        with self._lock:
            self._sound[files] = False

    def is_damaged(self, files: CheckpointFiles) -> bool:
        """Whether a checkpoint is known as damaged, as long as its files have the sizes that they were listed with."""
        return self._sound.get(files) is False

    def has_damaged(self, names: Sequence[str]) -> bool:
        """Whether a checkpoint in these files is known as damaged, by the last listing."""
        return any(files.names == tuple(names) and self.is_damaged(files) for files in self._versions.checkpoints)

    def sound_checkpoint(self, files: CheckpointFiles) -> CheckpointFiles:
        """The checkpoint to read at the version of this one: of several the last that can be a base, if any can. Only
        where there are several, it costs their footers."""
        same = self._same_version(files)
        return same[-1] if len(same) < 2 else next((c for c in reversed(same) if self._is_sound(c)), same[-1])

    def _same_version(self, files: CheckpointFiles) -> list[CheckpointFiles]:
        with self._lock:
            every, version = self._versions.checkpoints, attrgetter("version")
            start, end = (side(every, files.version, key=version) for side in (bisect_left, bisect_right))
            return every[start:end] or [files]

    def read_checkpoint(self, files: CheckpointFiles, read: Callable[[Checkpoint], _T]) -> _T:
        """What `read` gives of a checkpoint, or of another one of its version where that one is damaged; the error of
        the first where none can be read."""
        first: CorruptTableError | None = None
        while True:
            sound = self.sound_checkpoint(files)
            if first is not None and self.is_damaged(sound):
                raise first
            try:
                return read(self.checkpoint(sound))
            except CorruptTableError as error:
                first = first or error
                self.note_damage(sound)

    def _is_sound(self, files: CheckpointFiles) -> bool:
        with self._lock:
            if files not in self._sound:
                checkpoint = self.checkpoint(files)
                self._sound[files] = checkpoint.problem() is None and not self._missing_sidecars([checkpoint])
            return self._sound[files]

    def broken_checkpoints(self) -> dict[int, str]:
        """Versions whose checkpoint cannot be a base, and why, as far as footers and one listing of the sidecars tell.

        A footer is read of each; from a remote store several at once.
        """
        every = {c.version: c for c in self.checkpoints()}.values()
        checkpoints = [self.checkpoint(self.sound_checkpoint(files)) for files in every]
        problems = zip(checkpoints, self.storage.each_ahead(Checkpoint.problem, checkpoints), strict=True)
        reasons = {checkpoint.version: problem for checkpoint, problem in problems if problem is not None}
        return self._missing_sidecars([c for c in checkpoints if c.version not in reasons]) | reasons

    def _missing_sidecars(self, checkpoints: Sequence[Checkpoint]) -> dict[int, str]:
        """Versions of the checkpoints of which a sidecar is not in `_sidecars`, and which one."""
        if not any(checkpoint.sidecars for checkpoint in checkpoints):
            return {}
        names = {name for name, _, _ in self.storage.entries_from(SIDECARS)}
        missing = {
            checkpoint.version: next((s for s in checkpoint.sidecars if not is_absolute(s) and s not in names), None)
            for checkpoint in checkpoints
        }
        return {v: f"sidecar {name} of checkpoint {v} is missing" for v, name in missing.items() if name is not None}

    def may_have_sidecars(self, allows_v2: Callable[[], bool]) -> bool:
        """Whether checkpoints may name sidecars: true of a V2 name. Under the classic name the newest one tells, which
        a snapshot has read, and where there are older ones `allows_v2`."""
        kinds = self.files["kind"].to_list()
        if "v2" in kinds or "checkpoint" not in kinds:
            return "v2" in kinds
        newest = [self.checkpoint(files) for files in self.checkpoints()[-1:]]
        is_shown = any(checkpoint.problem() is not None or checkpoint.sidecars for checkpoint in newest)
        return is_shown or (kinds.count("checkpoint") > 1 and allows_v2())
