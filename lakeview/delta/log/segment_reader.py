"""A version that is read along a segment of its log, and along another one where a checkpoint proves damaged."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Self, TypeVar

from lakeview.delta.log.checkpoint_footer import CORRUPT_CHECKPOINT
from lakeview.delta.log.log_segment import LogSegment
from lakeview.delta.log.table_log import TableLog
from lakeview.model.errors import CorruptTableError

_S = TypeVar("_S", bound="SegmentReader")
_P = ParamSpec("_P")
_R = TypeVar("_R")

_MOST_DAMAGED = 8
"""So many damaged checkpoints are left one after the other: each time the commits after the next one are read again."""


class SegmentReader:
    """The segment in use, and its checkpoint. `earlier`: what is read on instead of the checkpoint, as `Replay`."""

    def __init__(self, log: TableLog, segment: LogSegment, earlier: Self | None = None) -> None:
        self._log = log
        self._lock = threading.RLock()
        self._earlier = earlier
        self._damage: CorruptTableError | None = None
        self._damaged_count = 0
        self.version = segment.version
        self._follow(segment)

    def _follow(self, segment: LogSegment) -> None:
        self.segment = segment
        self._checkpoint = None if segment.checkpoint is None else self._log.checkpoint(segment.checkpoint)

    def leave_checkpoint(self, error: CorruptTableError, segment: LogSegment | None = None) -> None:
        """Go on along another segment after this error: one without any checkpoint once many proved damaged.

        Raises the first such error where it is none of a checkpoint, and where no other segment leads to the version:
        then the first one stays. `segment`: what was read, by a caller without the lock: if another thread has left its
        checkpoint meanwhile, the error says nothing of the one in use now.
        """
        if error.kind != CORRUPT_CHECKPOINT:
            raise error
        with self._lock:
            base = self.segment.checkpoint
            if segment is not None and segment.checkpoint != base:
                return
            if self._earlier is not None:
                self._earlier = None  # it may be its checkpoint that is damaged
            elif base is None:
                raise self._damage or error
            else:
                self._damage = self._damage or error
                self._log.note_damage(base)
                self._damaged_count += 1
                too_many = self._damaged_count >= _MOST_DAMAGED
                unusable = self._log.checkpoints() if too_many else ()
                self._follow(self._log.segment(self.version, unusable))
                if self.segment.checkpoint is not None and self._log.is_damaged(self.segment.checkpoint):
                    raise self._damage


def along_any_segment(read: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """A method that reads under the lock, and again after it has left a damaged checkpoint.

    Nothing is looked at before: a page of a file that is damaged is only found by decoding it, and a sound table costs
    no more for this.
    """

    @wraps(read)
    def read_again(self: _S, /, *args: _P.args, **options: _P.kwargs) -> _R:
        with self._lock:
            while True:
                try:
                    return read(self, *args, **options)
                except CorruptTableError as error:
                    self.leave_checkpoint(error)

    return read_again
