"""What is opened to what its upkeep needs: retention, the log's files and the engines, each worked out once and kept.

Ages grow: what depends on the clock is kept for a minute.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from lakeview import views
from lakeview.app import cache
from lakeview.app.memo import kept
from lakeview.app.session import Opened
from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Finding
from lakeview.model.schema import Schema
from lakeview.model.snapshot import TableProtocol

MAX_PROTOCOLS = 100
MAX_SCHEMAS = 200


def retention(now: Opened) -> views.retention.simulation.Retention:
    """What a clean-up of the table finds now: versions of every branch, and the files of the default one."""
    return retention_of(now.address, now.latest)


@kept(16, 60)
def retention_of(address: str, latest: int) -> views.retention.simulation.Retention:
    """As `retention`, by address and latest version."""
    refs = cache.logged("refs", address, latest)
    snapshot = cache.snapshot(address, latest)
    return views.retention.simulation.retention(
        cache.logged("readable versions", address, latest),
        cache.logged("lifetimes", address, latest),
        views.retention.policy.retention_policy(snapshot.properties, refs),
        commits=cache.logged("history", address, latest),
        refs=refs,
        tombstones=snapshot.tombstones,
        now=cache.now(),
    )


@kept(32)
def log_files(address: str, latest: int) -> pl.DataFrame:  # noqa: ARG001 (in the key: a new commit, a new entry)
    """LOG_FILES; empty where the log is not in sight."""
    return cache.table(address).log_files()


@kept(32)
def needs(address: str, version: int, latest: int) -> pl.DataFrame:
    """NEEDS of a version, with what turned each feature on as far as the log tells."""
    snapshot = cache.snapshot(address, version)
    return views.engines.requirements.needs(snapshot, _origins(address, version, latest, snapshot.format))


@kept(32)
def shared_needs(address: str, version: int, latest: int) -> pl.DataFrame:
    """NEEDS of recipients, once the version is shared; empty where nobody shares such a table as it is."""
    snapshot = cache.snapshot(address, version)
    return views.engines.requirements.shared_needs(snapshot, _origins(address, version, latest, snapshot.format))


def _origins(
    address: str, version: int, latest: int, table_format: str
) -> dict[str, views.engines.requirements.Origin]:
    history = cache.logged("history", address, latest)
    writers = history.select("version", "timestamp", writer=pl.coalesce("user", "engine"), at="position")
    until = history.filter(pl.col("version") == version)["position"]
    last = until[0] if until.len() else None
    commits = history if last is None else history.filter(pl.col("position") <= last)
    origins = views.engines.requirements.usage_origins(commits, _schemas(address, latest, commits), table_format)
    origins |= views.engines.requirements.format_origins(cache.logged("format versions", address, latest), commits)
    protocols, whole = _protocols(address, commits, writers)
    return origins | views.engines.requirements.protocol_origins(protocols, table_format, whole=whole)


def _protocols(
    address: str, commits: pl.DataFrame, writers: pl.DataFrame
) -> tuple[list[tuple[int, datetime | None, str | None, TableProtocol]], bool]:
    """The protocols that the commits declared, oldest first, and whether the first is the table's first."""
    changed = commits.filter("protocol_changed").sort("position").tail(MAX_PROTOCOLS)
    found: list[tuple[int, datetime | None, str | None, TableProtocol]] = []
    named = changed.select("version").join(writers, on="version", how="left", maintain_order="left")
    for version, moment, writer in named.select("version", "timestamp", "writer").iter_rows():
        try:
            found.append((version, moment, writer, cache.snapshot(address, version).protocol))
        except LakeviewError:  # that version cannot be rebuilt: what it turned on has no origin
            return [], False
    return found, bool(found) and changed.height < MAX_PROTOCOLS and _is_first(commits, found[0][0])


def _is_first(commits: pl.DataFrame, version: int) -> bool:
    return version == 0 or commits.filter((pl.col("version") == version) & pl.col("parent").is_null()).height == 1


def _schemas(address: str, latest: int, commits: pl.DataFrame) -> list[tuple[int, datetime | None, Schema]]:
    found: list[tuple[int, datetime | None, Schema]] = []
    schemas = cache.logged("schemas", address, latest).join(commits.select("version"), on="version", how="semi")
    for version, moment in schemas.head(MAX_SCHEMAS).select("version", "timestamp").iter_rows():
        try:
            found.append((version, moment, cache.snapshot(address, version).schema))
        except LakeviewError:  # the schemas that can be read are told
            continue
    return found


@kept(16, 600)
def doctor(address: str, latest: int) -> list[Finding]:  # noqa: ARG001 (in the key: a new commit, a new entry)
    """What the log doctor finds; reads the whole log and lists the table's folder."""
    return cache.table(address).check(now=cache.now())
