"""Retention and comparison against the same said naively, version by version and file by file, on random tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

import polars as pl

from lakeview import views
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.frames import FILES, LIFETIMES, REFS, VERSIONS
from lakeview.model.schema import Schema
from lakeview.model.snapshot import Snapshot
from lakeview.model.table_metadata import TableMetadata

START = datetime(2026, 1, 1, tzinfo=UTC)
Live = dict[str, str | None]
"""The live files of a version: path to deletion vector."""


@dataclass
class RandomTable:
    """Files come, go and come back, and get and lose deletion vectors; some versions cannot be read."""

    random: Random
    versions: list[Live] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)
    now: datetime = START

    def __post_init__(self) -> None:
        live: Live = {}
        for version in range(self.random.randint(1, 12)):
            ever = dict.fromkeys(path for one in self.versions for path in one)  # in order: the same on every run
            live = {path: vector for path, vector in live.items() if self.random.random() > 0.25}
            live |= {f"f{version}-{i}": None for i in range(self.random.randint(0, 2))}
            live |= {path: None for path in ever if path not in live and self.random.random() < 0.1}
            for path in live:
                if self.random.random() < 0.2:
                    live[path] = self.random.choice([None, "v1", "v2"])
            self.versions.append(dict(live))
            self.times.append(self.now)
            self.now += timedelta(hours=self.random.randint(1, 200))
        self.readable = [self.random.random() > 0.15 for _ in self.versions]
        self.sizes = {path: self.random.randint(1, 99) for one in self.versions for path in one}

    def lifetimes(self) -> pl.DataFrame:
        rows, since = [], dict[tuple[str, str | None], int]()
        for version, live in enumerate([*self.versions, None]):
            for file in since.keys() - (live or {}).items():
                end = None if live is None else version
                rows += [(*file, since.pop(file), end, self.sizes[file[0]], 1)]
            since |= {file: version for file in (live or {}).items() if file not in since}
        return pl.DataFrame(rows, schema=LIFETIMES, orient="row")

    def frame(self) -> pl.DataFrame:
        columns = zip(range(len(self.times)), self.times, self.readable, strict=True)
        return pl.DataFrame([(*row, None) for row in columns], schema=VERSIONS, orient="row").reverse()

    def deletions(self, keep: timedelta) -> tuple[set[str], set[tuple[str, str | None]]]:
        """The paths that a cleanup deletes, and the deletion vectors of files."""
        return (
            {path for path in self.sizes if self._age([path in live for live in self.versions]) > keep},
            {
                (path, vector)
                for path in self.sizes
                for vector in ("v1", "v2")
                if self._age([live.get(path) == vector for live in self.versions]) > keep
            },
        )

    def _age(self, there: list[bool]) -> timedelta:
        """How long ago it was there last, nothing for what is there or never was."""
        if there[-1] or not any(there):
            return timedelta()
        return self.now - self.times[max(i for i, was in enumerate(there) if was) + 1]


def test_a_clean_up_takes_what_going_through_every_version_says() -> None:
    for seed in range(30):
        table = RandomTable(Random(seed))
        retention_found = views.retention.simulation.retention(
            table.frame(), table.lifetimes(), views.retention.policy.retention_policy({}), now=table.now
        )
        old = {path for live, readable in zip(table.versions, table.readable, strict=True) if readable for path in live}
        old -= table.versions[-1].keys()
        assert retention_found.retained_bytes == sum(table.sizes[path] for path in old), seed
        assert retention_found.live_bytes == sum(table.sizes[path] for path in table.versions[-1]), seed
        for hours in (0, 30, 150, 400, 1200):
            keep = timedelta(hours=hours, minutes=30)
            paths, vectors = table.deletions(keep)
            lost_versions = [
                version
                for version, live in enumerate(table.versions)
                if table.readable[version] and (paths & live.keys() or vectors & live.items())
            ]
            done = views.retention.simulation.simulate(retention_found, keep)
            risk = done.ribbon.filter(pl.col("state") == "at risk")["version"].to_list()
            assert (seed, hours, risk, done.versions) == (seed, hours, lost_versions, len(lost_versions))
            assert done.versions_left == sum(table.readable) - len(lost_versions)
            removed_paths = paths & old
            assert (done.files, done.bytes) == (len(removed_paths), sum(table.sizes[path] for path in removed_paths)), (
                seed,
                hours,
            )


def test_versions_that_expire_take_the_files_that_no_other_version_has() -> None:
    for seed in range(30):
        table = RandomTable(Random(seed))
        least, last = Random(seed).randint(1, 3), len(table.versions) - 1
        main = pl.DataFrame([{"name": "main", "kind": "branch", "version": last, "default": True}], schema=REFS)
        policy = views.retention.policy.retention_policy({"history.expire.min-snapshots-to-keep": str(least)}, main)
        retention_found = views.retention.simulation.retention(
            table.frame(), table.lifetimes(), policy, refs=main, now=table.now
        )
        for hours in (0, 150, 1200):
            keep = timedelta(hours=hours, minutes=30)
            expirations = [table.now - at > keep and last - version >= least for version, at in enumerate(table.times)]
            live_paths = {
                path for live, expired in zip(table.versions, expirations, strict=True) if not expired for path in live
            }
            removed_paths = {p for v, live in enumerate(table.versions) if table.readable[v] for p in live} - live_paths
            done = views.retention.simulation.simulate(retention_found, keep)
            lost_versions = [
                version for version, expired in enumerate(expirations) if expired and table.readable[version]
            ]
            assert done.ribbon.filter(pl.col("state") == "at risk")["version"].to_list() == lost_versions, (seed, hours)
            assert (done.files, done.bytes) == (len(removed_paths), sum(table.sizes[path] for path in removed_paths)), (
                seed,
                hours,
            )


def random_snapshot(random: Random, version: int) -> Snapshot:
    paths = [f"f{i}" for i in range(12) if random.random() < 0.6]
    rows = [
        {
            "path": path, "size": random.choice([random.randint(0, 99)] * 9 + [None]),
            "records": random.choice([random.randint(5, 9)] * 9 + [None]), "deleted_records": random.randint(0, 4),
            "partition_text": f"p={int(path[1:]) % 3}", "deletion_vector": random.choice([None, "v1"]),
        }
        for path in paths
    ]  # fmt: skip
    schema = Schema((Field("p", PrimitiveType("integer")),))
    metadata = TableMetadata("t", "delta", version, START, schema, ("p",))
    return Snapshot(metadata, frames={"files": pl.DataFrame(rows, schema=FILES)})


def naive_sum(rows: list[dict[str, int]], *columns: str) -> int | None:
    """The first column less the others, over all rows; None where one is unknown."""
    parts = [[row[column] for column in columns] for row in rows]
    return None if any(None in part for part in parts) else sum(first - sum(rest) for first, *rest in parts)


def test_two_versions_differ_by_what_looking_up_every_file_says() -> None:
    for seed in range(60):
        random = Random(seed)
        sides = [random_snapshot(random, version) for version in (0, 1)]
        before, after = ({row["path"]: row for row in side.files.to_dicts()} for side in sides)
        expected = {}
        for partition in {row["partition_text"] for row in (*before.values(), *after.values())}:
            old, new = (
                {path: row for path, row in side.items() if row["partition_text"] == partition}
                for side in (before, after)
            )
            added = [row for path, row in new.items() if path not in old]
            removed = [row for path, row in old.items() if path not in new]
            redeleted = [p for p in old.keys() & new.keys() if old[p]["deletion_vector"] != new[p]["deletion_vector"]]
            expected[partition] = (
                len(added), len(removed), len(redeleted), naive_sum(added, "size"), naive_sum(removed, "size"),
                naive_sum(added, "records", "deleted_records"), naive_sum(removed, "records", "deleted_records"),
            )  # fmt: skip
        diff = views.compare.versions.partition_difference(*sides)
        assert {row[0]: row[1:] for row in diff.iter_rows()} == expected, seed
        differences = views.compare.versions.file_difference(sides[0], sides[1])
        sums = [[e[i] for e in expected.values()] for i in range(7)]
        whole = [None if None in one else sum(one) for one in sums]  # type: ignore[arg-type]  # None is tested for
        assert [
            differences.added_files,
            differences.removed_files,
            differences.redeleted_files,
            differences.bytes_added,
            differences.bytes_removed,
        ] == whole[:5], seed
        old_rows, new_rows = (naive_sum(list(side.values()), "records", "deleted_records") for side in (before, after))
        if old_rows is not None and new_rows is not None:
            assert differences.rows == new_rows - old_rows, seed
        elif whole[2] or whole[5] is None or whole[6] is None:
            assert differences.rows is None, seed
        else:
            assert differences.rows == whole[5] - whole[6], seed
