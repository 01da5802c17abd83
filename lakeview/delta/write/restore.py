"""A table as it was at an earlier version, as a new commit: its files, its definition and its domains."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import polars as pl

from lakeview.delta.data.column_rules import CLUSTERING
from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.delta.data.schemas import parse_schema, schema_text
from lakeview.delta.features import check_writable
from lakeview.delta.log.actions import DomainMetadata, Metadata
from lakeview.delta.log.commit_info import CommitInfo
from lakeview.delta.log.file_actions import IDENTITY
from lakeview.delta.log.replay import Replay
from lakeview.delta.log.table_log import TableLog
from lakeview.delta.properties import PROTECTED_BEFORE
from lakeview.delta.write.checkpoint.struct_statistics import with_documents
from lakeview.delta.write.conflicts import VACUUM_END, VACUUM_START, VACUUM_TIME
from lakeview.delta.write.evolution import MAX_ID
from lakeview.delta.write.feature_removal import is_understood
from lakeview.delta.write.file_changes import LIVE_COLUMNS, add_of
from lakeview.delta.write.identity import identities, with_marks
from lakeview.delta.write.pending_commit import PendingCommit
from lakeview.delta.write.row_ids import DOMAIN, high_water_mark
from lakeview.delta.write.rules import FEATURE as CLUSTERING_FEATURE
from lakeview.delta.write.rules import active_features, check_clustering
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import CommitConflictError, CorruptTableError, DataFileMissingError, InvalidRequestError
from lakeview.model.schema import Schema
from lakeview.storage import Storage

_DOMAINS = "domainMetadata"
_STAYS = ("delta.inCommitTimestamp", "delta.enableInCommitTimestamps", PROTECTED_BEFORE)
"""Properties that say how commits are timed from some version on, and before which one checkpoints are protected: an
earlier version does not take that back."""


def restore(txn: PendingCommit, base: Replay, then: Replay) -> dict[str, int]:
    """Make the table what it was: files that are missing come back, the others go; the protocol is never downgraded.

    Returns operationMetrics. DataFileMissingError if a file that comes back is not in the store any more;
    UnsupportedTableError if the protocol of then asks more of writers than is implemented, InvalidRequestError for
    partitions of a table that is clustered by now.
    """
    check_writable(then.table_protocol, active_features(then.metadata), txn.storage.root)
    if then.metadata.partition_columns != base.metadata.partition_columns:
        check_clustering(base.protocol.writer_features or (), then.metadata.partition_columns or (), txn.storage.root)
    now, before = base.adds(LIVE_COLUMNS), then.adds(LIVE_COLUMNS)
    back = with_documents(before.join(now, on=IDENTITY, how="anti", nulls_equal=True), then)
    away = now.join(before, on=IDENTITY, how="anti", nulls_equal=True)
    _check_there(back, txn.storage)
    for row in away.iter_rows(named=True):
        txn.files.remove(row, data_change=True)
    definition = _merge_metadata(base.metadata, then.metadata)
    if definition != base.metadata:
        txn.definition.change_metadata(
            **{name: getattr(definition, name) for name in ("schema_string", "partition_columns", "configuration")}
        )
    _add(txn, back, now, then)
    domains = _domains(base, then)
    txn.domains += domains
    names = {domain.domain for domain in domains if not domain.removed}
    if names:
        txn.definition.support({_DOMAINS, *({CLUSTERING_FEATURE} if CLUSTERING in names else ())})
    return {
        "tableSizeAfterRestore": int(before["size"].sum()),
        "numOfFilesAfterRestore": before.height,
        "numRemovedFiles": away.height,
        "numRestoredFiles": back.height,
        "removedFilesSize": int(away["size"].sum()),
        "restoredFilesSize": int(back["size"].sum()),
    }


def _add(txn: PendingCommit, back: pl.DataFrame, now: pl.DataFrame, then: Replay) -> None:
    """Add the files that come back, and those that stay and whose row ids are gone, or others by now: of ids that
    count from two beginnings some are the same."""
    if not txn.definition.supports("rowTracking"):
        # without the feature ids mean nothing, and once it is there again they would be given twice
        without_ids = {"base_row_id": None, "default_row_commit_version": None}
        txn.files.adds += [add_of({**row, **without_ids}, data_change=True) for row in back.iter_rows(named=True)]
        return
    mark = high_water_mark(then)
    txn.raise_row_id_mark(mark)
    # a file that had none got its ids above those of then, or from 0 on once more: then it is given others
    live_ids = now.select(*IDENTITY, live_id=pl.col("base_row_id"), is_above=pl.col("base_row_id") > mark)
    back = _with_live_ids(back, now.filter(pl.col("base_row_id") > mark))
    txn.files.adds += [add_of(row, data_change=True) for row in back.iter_rows(named=True)]
    then_id, live_id = pl.col("base_row_id"), pl.col("live_id")
    files = then.adds(LIVE_COLUMNS).join(live_ids, on=IDENTITY, nulls_equal=True)
    is_other = pl.when(then_id.is_null()).then(~pl.col("is_above")).otherwise(then_id.ne_missing(live_id))
    for row in with_documents(files.filter(is_other).drop("live_id", "is_above"), then).iter_rows(named=True):
        txn.files.add_again(row, row["stats"])


def _with_live_ids(back: pl.DataFrame, live: pl.DataFrame) -> pl.DataFrame:
    """The files that come back, with the row ids that they have got since if they are `live` with another deletion
    vector."""
    # "to the baseRowId value (if present) of the last committed add action with the same path"
    ids = ["base_row_id", "default_row_commit_version"]
    live = live.unique("key").select("key", *ids)
    both = back.join(live, on="key", how="left", maintain_order="left", suffix="_live")
    return both.with_columns(pl.coalesce(name, f"{name}_live") for name in ids)


def check_target(version: int | None, at: datetime | None) -> None:
    """InvalidRequestError unless one of them is there: without both, the latest version would be restored."""
    if version is None and at is None:
        raise InvalidRequestError(
            "restore was given neither a version nor a moment",
            fix="give one, such as restore(3)",
            place="version",
            kind="no-version",
        )


def check_no_vacuum(log: TableLog, version: int, now: int) -> None:
    """CommitConflictError while a vacuum deletes: one that began before this version and has not ended. What came into
    use again after it asked the log, it deletes. `now`: milliseconds since 1970."""
    num_ends = 0
    for at, info in _infos(log, [v for v in reversed(log.versions()) if v <= version]):  # from the newest on
        if info.timestamp is not None and now - info.timestamp >= VACUUM_TIME // timedelta(milliseconds=1):
            return
        if info.operation == VACUUM_END:
            num_ends += 1
        elif info.operation == VACUUM_START and num_ends:
            num_ends -= 1
        elif info.operation == VACUUM_START:
            raise CommitConflictError(
                f"a vacuum, version {at}, is deleting files of earlier versions",
                fix="restore once it has ended; one that was killed counts as ended after an hour",
                kind="concurrent-vacuum",
                version=at,
                operation=info.operation,
                user=info.user,
            )


def _infos(log: TableLog, versions: Sequence[int]) -> Iterator[tuple[int, CommitInfo]]:
    """What commits say about themselves, from the newest on, down to the first that a log cleanup has taken meanwhile.

    Several are read at once: where one of them is gone, the newer ones are read one at a time, and none is left out.
    """
    after = 0
    try:
        for each in log.infos(versions):
            yield each
            after += 1
        return
    except CorruptTableError as error:
        if error.kind != "versions-not-contiguous":
            raise
    for version in versions[after:]:
        try:
            infos = list(log.infos([version]))
        except CorruptTableError as error:
            if error.kind != "versions-not-contiguous":
                raise
            return
        yield from infos


def _merge_metadata(now: Metadata, then: Metadata) -> Metadata:
    """The earlier metadata, without what must never go back: marks of identity columns, the largest column id, and the
    properties of `_STAYS`."""
    schema = parse_schema(then.schema_string)
    marks = _marks(parse_schema(now.schema_string), schema)
    configuration = {key: text for key, text in (then.configuration or {}).items() if not key.startswith(_STAYS)}
    configuration |= {key: text for key, text in (now.configuration or {}).items() if key.startswith(_STAYS)}
    largest = max((int(m.properties[MAX_ID]) for m in (now, then) if MAX_ID in m.properties), default=None)
    if largest is not None:
        configuration[MAX_ID] = str(largest)
    text = schema_text(with_marks(schema, marks)) if marks else then.schema_string
    return msgspec.structs.replace(
        now, schema_string=text, partition_columns=then.partition_columns, configuration=configuration
    )


def _marks(now: Schema, then: Schema) -> dict[str, int]:
    """The mark of each identity column of `then` that has one in `now`: the further one of both."""
    latest = {i.column: i.mark for i in identities(now)}
    marks = {}
    for identity in identities(then):
        if (mark := latest.get(identity.column)) is not None:
            further = max if identity.step > 0 else min
            marks[identity.column] = mark if identity.mark is None else further(identity.mark, mark)
    return marks


def _domains(base: Replay, then: Replay) -> list[DomainMetadata]:
    """What makes the domains those of the earlier version; row ids go on from their mark. Nothing where neither
    protocol knows of domains."""
    if _DOMAINS not in {*(base.protocol.writer_features or ()), *(then.protocol.writer_features or ())}:
        return []
    now, before = (
        # "Writers must only modify or delete system-controlled domains they understand"
        {name: text for name, text in state.domain_metadata().iter_rows() if name != DOMAIN and is_understood(name)}
        for state in (base, then)
    )
    changes = [DomainMetadata(name, text) for name, text in before.items() if now.get(name) != text]
    return [*changes, *(DomainMetadata(name, text, removed=True) for name, text in now.items() if name not in before)]


def _check_there(back: pl.DataFrame, storage: Storage) -> None:
    """DataFileMissingError names the first file that is gone, and how many are; costs one listing."""
    paths = list(dict.fromkeys(path for row in back.iter_rows(named=True) for path in _files_of(row)))
    if not paths:
        return
    there = set(storage.walk()["name"])
    missing = [path for path in paths if not (storage.exists(path) if is_absolute(path) else path in there)]
    if missing:
        raise DataFileMissingError(
            f"{len(missing):,} of {len(paths):,} files of that version are not in the store any more, such as "
            f"{missing[0]}: they were vacuumed, or lost",
            fix="restore them from a backup, or restore another version: the table's versions tell which are whole",
            place=missing[0],
        )


def _files_of(row: Mapping[str, Any]) -> Sequence[str]:
    vector = DeletionVector.of(row["vector"])
    return [row["path"]] if vector is None or vector.path is None else [row["path"], vector.path]
