"""A table with a feature to one without it: its traces go first, then the feature, for which history may have to go
(as `ALTER TABLE ... DROP FEATURE ... [TRUNCATE HISTORY]` of Delta Lake)."""

from collections.abc import Callable
from datetime import timedelta

from lakeview.delta.log.commits import json_text
from lakeview.delta.properties import value
from lakeview.delta.write.checkpoint import write_checkpoint
from lakeview.delta.write.feature_removal import (
    HISTORY,
    REMOVALS,
    check_removable,
    check_unused,
    is_of_history,
    marks_columns,
    traces,
)
from lakeview.delta.write.log_cleanup import truncate_log
from lakeview.delta.write.property_changes import PropertyChanges
from lakeview.delta.write.target import Target, until_made
from lakeview.model.clock import Clock
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError

_REORG = {"predicate": "[]", "applyPurge": "true"}
_RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"


def drop_feature(
    table: Target, begin: Callable[..., PropertyChanges], feature: str, *, truncate_history: bool, clock: Clock
) -> int | None:
    """Take a feature out of the protocol; returns the version. What the table keeps for it goes before, by commits of
    their own, which stay where the feature cannot be dropped yet: files that only its readers read right are written
    again. `begin`: gives a transaction of the table.

    `truncate_history`: delete what lies before the newest checkpoint that is older than a day, or than
    `delta.dropFeatureTruncateHistory.retentionDuration`. InvalidRequestError for a feature that needs no history gone;
    else as `protocol_without`. Done again where a commit of another writer collided: what the table keeps for the
    feature is looked for again, since that commit may have brought some.
    """
    return until_made(lambda: _drop(table, begin, feature, truncate_history=truncate_history, clock=clock))


def _drop(
    table: Target, begin: Callable[..., PropertyChanges], feature: str, *, truncate_history: bool, clock: Clock
) -> int | None:
    table.refresh()
    state = table.state()
    address = table.storage.root
    check_removable(feature, state.protocol, address)
    if truncate_history and not is_of_history(feature):
        raise InvalidRequestError(
            f"no reader needs {feature} for earlier versions of {address}: no history has to go",
            fix="leave truncate_history out", place=feature, kind="truncate-history",
        )  # fmt: skip
    removal = REMOVALS[feature]
    if removal.operation is not None and any(own := traces(feature, state)):
        parameters = {"properties": json_text(own.properties)} if own.properties else {}
        with begin(removal.operation, parameters=parameters, clock=clock) as txn:
            txn.remove_traces(feature)
    if removal.is_rewritten:
        with begin("REORG", parameters=_REORG, clock=clock) as txn:
            txn.rewrite_files(feature)
    if marks_columns(feature, state.metadata):
        with begin("REORG", parameters=_REORG, clock=clock) as txn:
            txn.remove_column_metadata(feature)
    if truncate_history:
        table.refresh()
        state = table.state()
        check_unused(feature, state, state.metadata, address)  # before history goes in vain
        truncate_log(table, value(state.properties, _RETENTION) or timedelta(days=1), clock=clock)
    parameters = {"featureName": feature, "truncateHistory": "true" if truncate_history else "false"}
    try:
        with begin("DROP FEATURE", parameters=parameters, clock=clock) as txn:
            txn.drop_feature(feature)
    except UnsupportedTableError as error:
        if error.kind == HISTORY:
            write_checkpoint(table)  # with which the log can begin, once all before is old enough
        raise
    return txn.version
