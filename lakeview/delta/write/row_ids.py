"""Row ids for the files of a commit (today's protocol, Row Tracking, Writer Requirements)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from lakeview.delta.log.actions import AddFile, DomainMetadata
from lakeview.delta.log.replay import Replay
from lakeview.delta.write.definition import Definition
from lakeview.delta.write.statistics_text import physical_records
from lakeview.model.errors import InvalidRequestError

DOMAIN = "delta.rowTracking"


def tracks_rows(definition: Definition) -> bool:
    """Whether every file needs row ids: the feature is supported, and not suspended."""
    suspended = definition.properties.get("delta.rowTrackingSuspended", "").lower() == "true"
    return definition.supports("rowTracking") and not suspended


def with_row_ids(adds: Sequence[AddFile], version: int, newest: Replay) -> tuple[list[AddFile], DomainMetadata | None]:
    """The adds with a baseRowId and a defaultRowCommitVersion each, and the new high-water mark; None if it stays.

    "Row IDs of newly added files start above the high-water mark": `newest` is the table just before this version.
    """
    mark = _mark(newest)
    found, first = [], mark + 1
    for add in adds:
        if add.base_row_id is not None:  # a file of the table, whose deletion vector changed
            found.append(add)
            continue
        rows = physical_records(add)
        if rows is None:
            raise InvalidRequestError(
                f"the statistics of {add.path} do not say how many rows it has, which row tracking asks for",
                fix="write the file with statistics",
                place=add.path,
                kind="no-row-count",
            )
        found.append(
            msgspec.structs.replace(add, base_row_id=first, default_row_commit_version=version) if rows else add
        )
        first += rows
    if first - 1 == mark:
        return found, None
    return found, DomainMetadata(DOMAIN, msgspec.json.encode({"rowIdHighWaterMark": first - 1}).decode())


def _mark(state: Replay) -> int:
    domains = state.domain_metadata()
    for text in domains.filter(domains["domain"] == DOMAIN)["configuration"]:
        known: Any = msgspec.json.decode(text)
        return int(known["rowIdHighWaterMark"])
    return -1
