"""Row ids for the files of a commit (today's protocol, Row Tracking, Writer Requirements)."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from lakeview.delta.log.actions import AddFile, DomainMetadata
from lakeview.delta.log.commits import Commit, only
from lakeview.delta.log.record_counts import records_of
from lakeview.delta.log.replay import Replay
from lakeview.delta.properties import is_true
from lakeview.delta.write.definition import SUSPENDED, Definition
from lakeview.model.errors import CorruptTableError, InvalidRequestError, UnsupportedTableError

DOMAIN = "delta.rowTracking"
_LARGEST = (1 << 63) - 1


def tracks_rows(definition: Definition) -> bool:
    """Whether every file needs row ids: the feature is supported, and not suspended."""
    is_suspended = is_true(definition.properties, SUSPENDED)
    return definition.supports("rowTracking") and not is_suspended


def with_row_ids(adds: Sequence[AddFile], version: int, mark: int) -> tuple[list[AddFile], DomainMetadata | None]:
    """The adds with a baseRowId and a defaultRowCommitVersion each, and the new high-water mark; None if it stays.

    "Writers must set the baseRowId field in all add actions that they commit", of files without rows too, "to a value
    that is higher than the row id high water mark": `mark` is that of the version before.
    """
    files, first = [], mark + 1
    for add in adds:
        if add.base_row_id is None:  # else a file of the table, whose deletion vector changed
            rows = records_of(add.stats)
            if rows is None:
                raise InvalidRequestError(
                    f"the statistics of {add.path} do not say how many rows it has, which row tracking asks for",
                    fix="count its rows first: recompute_statistics()",
                    place=add.path,
                    kind="no-row-count",
                )
            add = msgspec.structs.replace(add, base_row_id=first)
            first += rows
        if add.default_row_commit_version is None:
            add = msgspec.structs.replace(add, default_row_commit_version=version)
        files.append(add)
    if first - 1 == mark:
        return files, None
    if first - 1 > _LARGEST:
        raise UnsupportedTableError(
            f"{first - 1 - mark:,} rows need ids above {mark:,}, and ids end at {_LARGEST:,}",
            fix=f"check the domain {DOMAIN}: no table has had so many rows",
            place=DOMAIN,
            kind="no-row-ids",
        )
    return files, mark_domain(first - 1)


def mark_domain(mark: int) -> DomainMetadata:
    """What records a high-water mark."""
    return DomainMetadata(DOMAIN, msgspec.json.encode({"rowIdHighWaterMark": mark}).decode())


def high_water_mark(state: Replay) -> int:
    """The largest row id that a table has given at a version; -1 before the first."""
    domains = state.domain_metadata()
    for text in domains.filter(domains["domain"] == DOMAIN)["configuration"]:
        return _mark(text)
    return -1


def later_mark(commit: Commit, mark: int) -> int:
    """The mark after a commit."""
    marks = [_mark(d.configuration) for _, d in only("domain_metadata", [commit]) if d.domain == DOMAIN]
    return max([mark, *marks])


class _Mark(msgspec.Struct, frozen=True, rename="camel"):
    row_id_high_water_mark: Annotated[int, msgspec.Meta(ge=-1, le=_LARGEST)]


def _mark(text: str) -> int:
    try:
        return msgspec.json.decode(text, type=_Mark).row_id_high_water_mark
    except msgspec.DecodeError as error:
        raise CorruptTableError(
            f"the domain {DOMAIN} does not say which row ids have been given: {error}",
            fix="restore the commit that set it from a backup",
            place=DOMAIN,
            kind="corrupt-commit",
        ) from error
