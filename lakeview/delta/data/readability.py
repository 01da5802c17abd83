"""The log and one listing of the data to VERSIONS: which versions can be read, and why not."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import polars as pl

from lakeview.delta.data.deletion_vectors import file_of
from lakeview.delta.data.schemas import table_schema
from lakeview.delta.data.type_widening import check_type_changes
from lakeview.delta.features import check_readable
from lakeview.delta.log.actions import Metadata, Protocol, table_protocol
from lakeview.delta.log.definitions import definitions_in_force
from lakeview.delta.log.history import History
from lakeview.delta.log.paths import canonical
from lakeview.delta.log.table_log import TableLog
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import AccessDeniedError, CorruptTableError, LakeviewError, UnsupportedTableError
from lakeview.model.frames import VERSIONS
from lakeview.model.schema import Schema
from lakeview.model.table_metadata import TableProtocol
from lakeview.storage import NO_LISTING, Storage
from lakeview.storage.names_ahead import NamesAhead

_UNDATED = {name: kind for name, kind in VERSIONS.items() if name != "timestamp"}


def readable_versions(log: TableLog, history: History, times: pl.DataFrame, folder: NamesAhead) -> pl.DataFrame:
    """VERSIONS, newest first.

    A version is readable if a base (commit 0, or a complete checkpoint that is whole as far as its footer shows) and an
    unbroken run of commits reach it, its protocol, file format and type changes are ones we implement, and its data
    files and deletion vectors are there. Files are looked up in one listing of the table's `folder`; files recorded
    outside it are taken to be there, unless they lie outside the allowed roots. In a store that shows no folders
    `readable` is null.
    """
    bases = {c.version for c in log.checkpoints()}
    every = _every(log)
    broken_commits = history.unreadable_commits()
    problems = log.broken_checkpoints()
    with ThreadPoolExecutor(1, thread_name_prefix="lakeview-names") as pool:  # each takes seconds of a million files
        listing = pool.submit(folder.take, log.latest)
        lives = history.lifetimes()  # reads the bases whole, and so may find that one cannot be read
        try:
            names = listing.result()
        except UnsupportedTableError as error:
            if error.kind != NO_LISTING:
                raise
            return listed_versions(log, times)  # which files are there is not to be seen
    protocols, metadata, unreadable = definitions_in_force(log)
    problems = unreadable | history.problems | problems
    bases -= problems.keys()
    reasons = _broken_runs(every, bases, set(log.versions()), broken_commits, problems)
    refusals = _refused_versions(protocols, metadata, every, log.storage.config.max_schema_depth)
    reasons = _file_problems(lives, names, log.storage, every) | refusals | reasons
    return _versions(every, [v not in reasons for v in every], [reasons.get(v) for v in every], times)


def listed_versions(log: TableLog, times: pl.DataFrame) -> pl.DataFrame:
    """VERSIONS, newest first, without a look whether they can be read."""
    every = _every(log)
    return _versions(every, [None] * len(every), [None] * len(every), times)


def _every(log: TableLog) -> list[int]:
    """Versions with a commit or a complete checkpoint, oldest first."""
    return sorted({*log.versions(), *(c.version for c in log.checkpoints())})


def _versions(
    versions: list[int], readable: Sequence[bool | None], reasons: Sequence[str | None], times: pl.DataFrame
) -> pl.DataFrame:
    frame = pl.DataFrame({"version": versions, "readable": readable, "reason": reasons}, schema=_UNDATED)
    return frame.reverse().join(times, on="version", how="left", maintain_order="left").select(VERSIONS.names())


def _broken_runs(
    versions: list[int],
    bases: set[int],
    commits: set[int],
    broken_commits: Mapping[int, str],
    broken_checkpoints: Mapping[int, str],
) -> dict[int, str]:
    """Versions that no unbroken run of commits from a base reaches."""
    reasons: dict[int, str] = {}
    reason: str | None = None
    previous: int | None = None
    for version in versions:
        if version in bases:
            reason = None
        elif reason is None:
            reason = broken_commits.get(version)
            if previous is None and version > 0:
                reason = f"the log starts at version {version}, and no checkpoint lies at or below it"
            elif previous is not None and version != previous + 1:
                reason = f"commit {previous + 1} is missing from the log"
            elif version not in commits:
                reason = f"commit {version} is missing from the log"
            if reason is not None:
                reason = broken_checkpoints.get(version, reason)
        if reason is not None:
            reasons[version] = reason
        previous = version
    return reasons


def _refused_versions(
    protocols: Mapping[int, Protocol], metadata: Mapping[int, Metadata], versions: list[int], max_depth: int
) -> dict[int, str]:
    """Versions whose protocol, file format or schema this reader does not implement."""
    reasons: dict[int, str] = {}
    reason: str | None = None
    current: Metadata | None = None
    protocol: TableProtocol | None = None
    for version in versions:
        if version in metadata or version in protocols:
            current = metadata.get(version, current)
            protocol = table_protocol(protocols[version]) if version in protocols else protocol
            reason = None if protocol is None else _refusal(protocol, current, max_depth)
        if reason is not None:
            reasons[version] = reason
    return reasons


def _refusal(protocol: TableProtocol, metadata: Metadata | None, max_depth: int) -> str | None:
    properties = {} if metadata is None else metadata.properties
    try:
        check_readable(protocol, properties, "it", by_number=True)
        if metadata is not None:
            schema = table_schema(metadata.schema_string, protocol, properties, max_depth=max_depth)
            check_data_files(metadata.format.provider, schema, "it")
    except LakeviewError as error:
        return error.message
    return None


def check_data_files(provider: str, schema: Schema, address: str) -> None:
    """UnsupportedTableError if data files are of a format we do not read, or of types that became others in ways the
    protocol does not have. `provider`: metaData's file format."""
    if provider.lower() != "parquet":
        raise UnsupportedTableError(
            f"{address} keeps its rows in {provider} files, which this reader does not read",
            fix="its log can be shown; read the rows with the engine that wrote them",
            place="metaData.format.provider",
            kind="unsupported-data-format",
        )
    check_type_changes(schema)


def _vector_files(lives: pl.DataFrame) -> pl.DataFrame:
    """LIFETIMES with the deletion vector's file as `path`, for each stay of a data file that has one."""
    paths: dict[str, str | None] = {}
    for vector in lives["deletion_vector"].drop_nulls().unique():
        try:
            paths[vector] = file_of(vector)
        except CorruptTableError:  # no such file can be there
            paths[vector] = vector
    return lives.select(
        pl.col("deletion_vector").replace_strict(paths, default=None, return_dtype=pl.String).alias("path"),
        "added",
        "removed",
    ).filter(pl.col("path").is_not_null())


def _file_problems(lives: pl.DataFrame, names: pl.Series, storage: Storage, versions: list[int]) -> dict[int, str]:
    """Versions with a data file or a deletion vector that is not in the table's folder, or that lies outside the roots,
    by LIFETIMES and the names of all files there."""
    lives = lives.select("path", "deletion_vector", "added", "removed")
    vectors = _vector_files(lives)
    lives = pl.concat([lives.select(vectors.columns), vectors])
    keys = canonical(lives["path"], storage.root)
    maybe = (keys.str.contains(r"^(/|\.\./)") | keys.str.contains(":", literal=True)).arg_true()
    is_outside = [key.startswith("../") or is_absolute(key) for key in keys.gather(maybe)]
    nowhere = pl.Series([False], dtype=pl.Boolean).new_from_index(0, keys.len())
    outside = nowhere.scatter(maybe, pl.Series(is_outside, dtype=pl.Boolean))
    with_keys = lives.with_columns(keys.alias("key"))
    missing = with_keys.filter(~outside).join(names.to_frame("key"), on="key", how="anti")
    refused_files = _refused_places(with_keys.filter(outside), storage)
    reasons: dict[int, str] = {}
    for files, one, many in (
        (refused_files, "lies outside the table and the allowed roots", "lie outside the table and the allowed roots"),
        (missing, "is missing from the store", "are missing from the store"),
    ):
        has_vectors = files.join(vectors, on="path", how="semi").height > 0
        what = "data files and deletion vectors" if has_vectors else "data files"
        for version, count in _counts(files, versions).items():
            reasons.setdefault(version, f"{count:,} of its {what} {one if count == 1 else many}")
    return reasons


def _refused_places(files: pl.DataFrame, storage: Storage) -> pl.DataFrame:
    """Those of the files that may not be opened, decided for each folder: nothing is asked of the store."""
    folders = files["key"].str.replace(r"[^/]*$", "")
    refused_folders = [folder for folder in folders.unique() if not _is_allowed(folder, storage)]
    return files.filter(folders.is_in(pl.Series(refused_folders, dtype=pl.String).implode()))


def _is_allowed(folder: str, storage: Storage) -> bool:
    try:
        storage.resolve(f"{folder}file")
    except (AccessDeniedError, FileNotFoundError):
        return False
    return True


def _counts(files: pl.DataFrame, versions: list[int]) -> dict[int, int]:
    """How many of these files are live in each version that has any of them."""
    start = pl.col("added").fill_null(versions[0])
    is_removed = pl.col("removed").is_not_null()
    steps = pl.concat(
        [
            files.select(start.alias("version"), pl.lit(1).alias("step")),
            files.filter(is_removed).select(pl.col("removed").alias("version"), pl.lit(-1).alias("step")),
        ]
    )
    if not steps.height:
        return {}
    live = steps.group_by("version").agg(pl.col("step").sum()).sort("version").with_columns(pl.col("step").cum_sum())
    every = pl.DataFrame({"version": versions}, schema={"version": pl.Int64()})
    at = every.join_asof(live.set_sorted("version"), on="version").filter(pl.col("step") > 0)
    return dict(at.select("version", "step").iter_rows())
