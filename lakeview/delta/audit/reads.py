"""The law of reads: what an operation read, and which commits between its readVersion and its own changed it."""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import polars as pl

from lakeview.delta.audit.records import CommitRecord
from lakeview.delta.audit.run import Run
from lakeview.delta.data.partition_values import partition_columns, partition_fields
from lakeview.delta.data.schemas import parse_schema
from lakeview.model.audit_cases import Case, proven, unknowable, violated
from lakeview.model.errors import LakeviewError
from lakeview.predicates import predicate

_ROW_CHANGES = frozenset({"DELETE", "UPDATE", "MERGE"})
_ATTRIBUTE_ID = re.compile(r"#\d+L?\b")
"""Spark prints columns with the ids of its plan: `month#12 = 3`."""


def reads_unchanged(run: Run) -> Iterator[Case]:
    """reads-unchanged, of commits with file actions that follow another one."""
    stale = _stale_removals(run)
    sums = {row["version"]: row for row in run.sums.iter_rows(named=True)}
    for version, row in sums.items():
        if version == 0:
            continue
        record = run.by_version[version]
        read_version = record.info.read_version
        if record.is_append and not row["removed"]:
            yield proven(version)  # it read nothing
        elif record.is_restore:
            continue  # the law of restores compares the files themselves
        elif read_version is None:
            yield unknowable(version, "the commit does not record the version that it read")
        elif read_version >= version:
            yield unknowable(version, f"the commit says that it read version {read_version:,}, which was not there yet")
        elif read_version == version - 1:
            yield proven(version)
        elif version in stale:
            other, path = stale[version]
            yield violated(
                version, f"it removes a file that version {other} added after what it read",
                f"files of version {read_version}", f"a file of version {other}", path,
            )  # fmt: skip
        elif row["rearranges"]:
            yield proven(version)  # it read the files that it removes, and no other
        else:
            yield _between(run, record, read_version, sums)


def _stale_removals(run: Run) -> dict[int, tuple[int, str]]:
    """By version, a file that the commit removes and whose path came after its readVersion: the version, the path.

    A path that was live then may have another deletion vector meanwhile: writers join the two.
    """
    reads_of = {record.version: record.info.read_version for record in run.records}
    pairs = [(version, read) for version, read in reads_of.items() if read is not None and read < version - 1]
    reads = pl.DataFrame(pairs, schema={"version": pl.Int64(), "read": pl.Int64()}, orient="row")
    late = run.removals.join(reads, on="version").filter(pl.col("was_live") & (pl.col("before") > pl.col("read")))
    lives = run.lives.select("key", pl.col("version").alias("from"), pl.col("after").alias("to"))
    alive = late.join(lives, on="key").filter((pl.col("from") <= pl.col("read")) & (pl.col("to") > pl.col("read")))
    stale = late.join(alive.select("version", "key"), on=["version", "key"], how="anti")
    return {version: (before, key) for version, before, key in stale.select("version", "before", "key").iter_rows()}


def _between(run: Run, record: CommitRecord, read_version: int, sums: dict[int, dict[str, object]]) -> Case:
    """The case of an operation that read by condition: what commits after its readVersion added."""
    version = record.version
    if read_version + 1 < run.first:
        return unknowable(version, run.unknown_past)
    others = [run.by_version[v] for v in range(read_version + 1, version)]
    versions = [r.version for r in others if r.metadata is not None]
    if versions:
        return unknowable(version, f"version {versions[0]} changed the table's metadata in between")
    data = _with_new_rows(others, sums)
    if not data:
        return proven(version)
    if not (record.info.operation in _ROW_CHANGES or record.mode == "overwrite"):
        return unknowable(version, f"what {record.info.operation or 'the operation'} read is not recorded")
    if record.info.isolation_level == "WriteSerializable":
        data = [r for r in data if not r.is_append]  # such an append counts as coming after
    return next(filter(None, (_collision(run, record, other) for other in data)), proven(version))


def _with_new_rows(commits: Sequence[CommitRecord], sums: Mapping[int, dict[str, object]]) -> list[CommitRecord]:
    return [c for c in commits if sums.get(c.version, {}).get("added") and not sums[c.version]["rearranges"]]


def _collision(run: Run, record: CommitRecord, other: CommitRecord) -> Case | None:
    case = _matching_rows(run, record, other.version)
    if case is not None and other.is_append and record.info.isolation_level is None:
        return unknowable(
            record.version, f"version {other.version} appended in between, and the isolation level is not recorded"
        )
    return case


def _matching_rows(run: Run, record: CommitRecord, other: int) -> Case | None:
    """Whether files that a commit added may, or must, hold rows that the operation's condition matches."""
    version, text = record.version, _condition(record)
    claim = f"version {other} added files"
    if text is None:
        _, metadata = run.definitions[version]
        is_partitioned = metadata is not None and bool(metadata.partition_columns)
        if record.info.operation == "MERGE" or (record.info.operation not in _ROW_CHANGES and is_partitioned):
            return unknowable(version, f"{claim} in between, which the operation may have had to read")
        return violated(
            version, f"{claim} in between, and the operation read the whole table", "none", f"version {other}"
        )
    match = _matching_partitions(run, text, version, other)
    if match is None:
        return unknowable(version, f"{claim} in between, which may hold rows that its condition matches")
    if match:
        return violated(version, f"{claim} in between, and all of their rows match its condition", "none", match[0])
    return None


def _condition(record: CommitRecord) -> str | None:
    """The operation's condition as SQL: engines record it as text, or as a JSON list of texts."""
    text = record.predicate
    if text is not None and text.startswith("["):
        try:
            parts = msgspec.json.decode(text, type=list[str])
        except msgspec.DecodeError:
            return text
        text = " AND ".join(f"({part})" for part in parts if part != "true") or None
    return None if text is None else _ATTRIBUTE_ID.sub("", text)


def _matching_partitions(run: Run, text: str, version: int, other: int) -> list[str] | None:
    """Paths of the files that a commit added in partitions that a condition matches; None where it is not about
    partition columns alone, or cannot be read."""
    _, metadata = run.definitions[version]
    if metadata is None:
        return None
    try:
        schema = parse_schema(metadata.schema_string, max_depth=run.log.storage.config.max_schema_depth)
        fields = partition_fields(schema, metadata.partition_columns or [])
        where = predicate(text, schema)
        if not fields or not set(where.meta.root_names()) <= {field.name for field in fields}:
            return None
        adds = run.read_adds([other], ["partition_values"])
        values = pl.DataFrame(partition_columns(adds["partition_values"], fields))
        return adds["key"].filter(values.select(where.fill_null(value=False)).to_series()).to_list()
    except (LakeviewError, pl.exceptions.PolarsError):
        return None
