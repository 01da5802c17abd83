"""The demo's tables as others see them: Delta by its JSON log, deltalake and the kernel, Iceberg by pyiceberg."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import polars as pl
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from tests.differential.oracles import kernel_rows

FILES = pl.Schema({"path": pl.String(), "size": pl.Int64(), "rows": pl.Int64(), "partition": pl.String()})
"""Data files: bytes, rows before deletes (null where the writer did not count them), and `period=1`."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its version in the app's words, its writer, and the FILES after it."""

    label: str
    writer: str
    live: pl.DataFrame


class Independent(Protocol):
    """A table as another reader sees it; commits by number, of Iceberg those of the main branch, from 0."""

    name: str
    folder: Path

    @property
    def commits(self) -> list[Commit]:
        """All commits, the oldest first."""

    def rows(self, number: int) -> pl.DataFrame:
        """The rows after a commit."""

    def added(self, number: int) -> pl.DataFrame:
        """The FILES that a commit added."""

    def rows_of_files(self, number: int) -> pl.DataFrame:
        """The rows of the files that a commit added, with the columns that the files have."""

    def rows_of_paths(self, paths: Iterable[str]) -> pl.DataFrame:
        """The rows of these files, with the columns that they have."""


class _Commits:
    """What follows from the commits alone."""

    folder: Path
    commits: list[Commit]

    def added(self, number: int) -> pl.DataFrame:
        live = self.commits[number].live
        return live.join(self.commits[number - 1].live, on="path", how="anti") if number else live

    def rows_of_files(self, number: int) -> pl.DataFrame:
        return self.rows_of_paths(self.added(number)["path"])

    def rows_of_paths(self, paths: Iterable[str]) -> pl.DataFrame:
        places = [self.folder / path.removeprefix("file://") for path in paths]
        return pl.concat([pl.read_parquet(place) for place in places], how="diagonal_relaxed")


class DeltaLog(_Commits):
    """A Delta table whose commits are all there as JSON."""

    def __init__(self, lake: Path, name: str) -> None:
        self.name, self.folder = name, lake.resolve() / name
        commits = sorted((self.folder / "_delta_log").glob("*.json"))
        self.actions: list[list[dict[str, Any]]] = [
            [json.loads(line) for line in commit.read_text("utf-8").splitlines()] for commit in commits
        ]

    @cached_property
    def commits(self) -> list[Commit]:  # type: ignore[override]  # read once
        live: dict[str, dict[str, Any]] = {}
        commits_found = []
        for number, actions in enumerate(self.actions):
            for path in self.values(actions, "remove"):
                live.pop(path["path"], None)
            live |= {add["path"]: add for add in self.values(actions, "add")}
            writer = self.values(actions, "commitInfo")[0].get("userName", "")  # a pipeline names no user
            commits_found.append(
                Commit(f"v{number}", writer, pl.DataFrame(map(_delta_file, live.values()), schema=FILES))
            )
        return commits_found

    def rows(self, number: int) -> pl.DataFrame:
        return pl.DataFrame(DeltaTable(str(self.folder), version=number).to_pyarrow_table())

    @staticmethod
    def values(actions: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
        """The actions of one kind."""
        return [action[kind] for action in actions if kind in action]


class KernelLog(DeltaLog):
    """A Delta table with a feature that deltalake does not read: type widening."""

    def rows(self, number: int) -> pl.DataFrame:
        return pl.DataFrame(kernel_rows(str(self.folder), number))


def _delta_file(add: dict[str, Any]) -> dict[str, Any]:
    return {
        "path": add["path"],
        "size": add["size"],
        "rows": json.loads(add["stats"]).get("numRecords") if add.get("stats") else None,
        "partition": "/".join(f"{key}={value}" for key, value in add["partitionValues"].items()),
    }


class IcebergMetadata(_Commits):
    """An Iceberg table by its newest metadata file."""

    def __init__(self, lake: Path, name: str) -> None:
        self.name, self.folder = name, lake.resolve() / name
        files = (self.folder / "metadata").glob("*.metadata.json")
        newest = max(files, key=lambda path: int(re.split(r"[.-]", path.name.removeprefix("v"))[0]))
        self.metadata: dict[str, Any] = json.loads(newest.read_text("utf-8"))
        self.table = StaticTable.from_metadata(str(newest))

    @cached_property
    def snapshots(self) -> list[dict[str, Any]]:
        """The snapshots of the main branch, the oldest first."""
        every = {snapshot["snapshot-id"]: snapshot for snapshot in self.metadata["snapshots"]}
        line = [every[self.metadata["current-snapshot-id"]]]
        while (parent := line[-1].get("parent-snapshot-id")) is not None:
            line.append(every[parent])
        return line[::-1]

    @cached_property
    def commits(self) -> list[Commit]:  # type: ignore[override]  # read once
        return [
            Commit(f"s{s['sequence-number']}", _iceberg_writer(s), self._live(s["snapshot-id"])) for s in self.snapshots
        ]

    def rows(self, number: int) -> pl.DataFrame:
        snapshot = self.snapshots[number]["snapshot-id"]
        return pl.DataFrame(self.table.scan(snapshot_id=snapshot).to_arrow())

    def _live(self, snapshot: int) -> pl.DataFrame:
        files = pl.DataFrame(self.table.inspect.files(snapshot)).filter(pl.col("content") == 0)
        return files.select(
            path=pl.col("file_path"),
            size=pl.col("file_size_in_bytes"),
            rows=pl.col("record_count"),
            partition=pl.col("partition").map_elements(_partition_text, pl.String()),
        )


def _iceberg_writer(snapshot: dict[str, Any]) -> str:
    return f"{snapshot['summary']['engine-name']} {snapshot['summary']['engine-version']}"


def _partition_text(values: dict[str, Any]) -> str:
    """`flight_month=2026-08/origin=EWR`: months come as their number since 1970."""
    texts = {
        key: f"{1970 + value // 12}-{value % 12 + 1:02}" if key.endswith("_month") else value
        for key, value in values.items()
        if value is not None
    }
    return "/".join(f"{key}={text}" for key, text in texts.items())
