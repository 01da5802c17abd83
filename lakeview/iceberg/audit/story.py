"""Steps to the files that were live before and after each: events along the line of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import polars as pl

from lakeview.iceberg.audit.steps import Step
from lakeview.iceberg.metadata.refs import ancestors
from lakeview.iceberg.metadata.table_metadata import Metadata

EVENTS = ("file", "path", "content", "sequence_number", "records", "target", "vector")


class Story:
    """What came and went in all steps that could be read. Only changes are stored, not what each snapshot lists."""

    def __init__(self, metadata: Metadata, steps: Sequence[Step]) -> None:
        self._metadata = metadata
        self.steps = steps
        self._positions = {step.snapshot.snapshot_id: step.position for step in steps}
        parents = [step.parent.snapshot_id for step in steps if step.parent is not None]
        self._branches = len(parents) > len(set(parents)) or sum(step.parent is None for step in steps) > 1

    @cached_property
    def events(self) -> pl.DataFrame:
        """EVENTS with `position` and `live`, oldest first: one row a file that came (live) or went in a step."""
        frames = [
            frame.select(*EVENTS, pl.lit(step.position).alias("position"), pl.lit(value=live).alias("live"))
            for step in self.steps
            for frame, live in ((step.went, False), (step.came, True))
        ]
        return pl.concat(frames)

    @cached_property
    def several_times(self) -> pl.DataFrame:
        """The events of files that come more than once, anywhere."""
        came = self.events.filter("live")
        hashes = came["file"].hash()
        again = (
            came.filter(hashes.is_duplicated())["file"].unique()
            if hashes.n_unique() < len(hashes)
            else came["file"][:0]
        )
        return self.events.filter(pl.col("file").is_in(again.implode()))

    def live(self, step: Step, files: pl.Series, column: str = "file", *, before: bool = False) -> pl.DataFrame:
        """EVENTS of those of these files that are live in a step's snapshot, or `before` in its parent's."""
        events = self.events.filter(pl.col(column).is_in(files.implode()) & (pl.col("position") <= step.position))
        if before:
            events = events.filter(pl.col("position") < step.position)
        if self._branches:
            line = ancestors(self._metadata, step.snapshot.snapshot_id)
            numbers = [self._positions[s.snapshot_id] for s in line if s.snapshot_id in self._positions]
            events = events.filter(pl.col("position").is_in(numbers))
        return events.unique("file", keep="last", maintain_order=True).filter("live")

    def has_broad_deletes(self, step: Step) -> bool:
        """Whether the parent of a step may have delete files whose data files are not recorded: equality deletes, and
        position deletes for several files."""
        return bool(self._broad_since is not None and step.position > self._broad_since)

    @cached_property
    def _broad_since(self) -> int | None:
        broad = self.events.filter((pl.col("content") != 0) & pl.col("target").is_null())["position"].min()
        return broad if isinstance(broad, int) else None
