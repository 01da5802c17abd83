"""What a table feature that is in force asks of the rest of the table: types that changed, row ids, clustering columns,
times inside commits."""

from collections.abc import Iterator, Sequence

import polars as pl

from lakeview.delta.data.bounds import bound_kind
from lakeview.delta.data.column_rules import CLUSTERING, clustering_columns
from lakeview.delta.data.row_tracking import MATERIALIZED
from lakeview.delta.data.statistics import physical_leaves, statistics_frame
from lakeview.delta.data.type_widening import check_type_changes
from lakeview.delta.features import CATALOG_FEATURES
from lakeview.delta.lint.facts import LogFacts, json_file
from lakeview.delta.lint.report import finding, of_commits, of_files, of_names, short
from lakeview.delta.log.times import asks_for_in_commit_times
from lakeview.delta.properties import is_true
from lakeview.model.data_types import VOID
from lakeview.model.errors import CorruptTableError, UnsupportedTableError
from lakeview.model.findings import Finding
from lakeview.model.printable import count_text
from lakeview.model.type_tree import nodes

_PROTOCOL, _CONFIGURATION = "protocol", "metaData.configuration"


def changes_of_types(facts: LogFacts) -> Iterator[Finding]:
    """Every recorded change of a type is one that the protocol lists: readers refuse the table for any other."""
    if facts.schema is None:
        return
    try:
        check_type_changes(facts.schema)
    except (UnsupportedTableError, CorruptTableError) as error:
        yield finding(
            "type-change-unsupported", "A recorded type change is not one of the protocol", error.message, error.place
        )


# -- row tracking

_SUSPENDED = "delta.rowTrackingSuspended"
_MARK = "rowIdHighWaterMark"


def row_tracking(facts: LogFacts) -> Iterator[Finding]:
    """Where rows are tracked every file has ids, no two the same, below the high-water mark; properties say where files
    keep ids of rows that moved."""
    if "rowTracking" not in facts.features:
        return
    files = facts.row_ids.with_columns(first=pl.col("base_row_id").cast(pl.Int128))
    files = files.with_columns(end=pl.col("first") + pl.col("records").fill_null(0))
    if facts.is_on("rowTracking", "delta.enableRowTracking"):
        yield from _tracking_properties(facts)
        without_ids = files.filter(pl.col("base_row_id").is_null() | pl.col("default_row_commit_version").is_null())
        claim = (
            f"{count_text(without_ids.height, 'live file has', 'live files have')} no row ids where rows are tracked"
        )
        yield from of_files("row-ids-missing", without_ids, claim)
    in_order = files.filter(pl.col("first").is_not_null() & (pl.col("end") > pl.col("first"))).sort("first")
    twice = in_order.filter(pl.col("first") < pl.col("end").cum_max().shift(1))
    claim = f"{count_text(twice.height, 'live file begins', 'live files begin')} with row ids of another file"
    yield from of_files("row-ids-twice", twice, claim)
    yield from _high_water_mark(facts, in_order["end"].max())


def _tracking_properties(facts: LogFacts) -> Iterator[Finding]:
    columns = {key: facts.properties.get(key) for key in MATERIALIZED.values()}
    missing = [key for key, name in columns.items() if not name]
    claim = "Row tracking has no name for a column of materialized ids"
    yield from of_names("row-tracking-columns-unnamed", missing, claim, _CONFIGURATION)
    column_names = {field.stored_name for field in facts.schema or ()}
    names = [name for name in columns.values() if name]
    shared_names = [name for name in dict.fromkeys(names) if name in column_names or names.count(name) > 1]
    claim = "A column of materialized ids has the name of another column"
    yield from of_names("row-tracking-columns-taken", shared_names, claim, _CONFIGURATION)
    if is_true(facts.properties, _SUSPENDED):
        claim, evidence = "Row tracking is enabled and suspended: new files get no ids", f"{_SUSPENDED} = true"
        yield finding("row-tracking-suspended", claim, evidence, _CONFIGURATION)


def _high_water_mark(facts: LogFacts, end: object) -> Iterator[Finding]:
    """`end`: one above the highest id of a live file."""
    if not isinstance(end, int):
        return
    mark = (json_file((_domain(facts, "delta.rowTracking") or "").encode()) or {}).get(_MARK)
    if not isinstance(mark, int) or mark < end - 1:
        claim = "The high-water mark of row ids is below ids in use"
        evidence = f"{_MARK} {'is not recorded' if mark is None else short(str(mark))}; the highest id is {end - 1:,}"
        yield finding("row-id-mark-too-low", claim, evidence, "domainMetadata")


def _domain(facts: LogFacts, name: str) -> str | None:
    if facts.replay is None:
        return None
    domains = facts.replay.domain_metadata()
    return next(iter(domains.filter(domains["domain"] == name)["configuration"]), None)


# -- clustering


def clustering(facts: LogFacts) -> Iterator[Finding]:
    """Clustering columns are in the schema, have bounds, and have statistics in every file; nothing is partitioned."""
    text = _domain(facts, CLUSTERING)
    if facts.schema is None or facts.replay is None or text is None or "clustering" not in facts.features:
        return
    if facts.partition_columns:
        claim = "The table is clustered and partitioned"
        yield from of_names("clustered-and-partitioned", facts.partition_columns, claim, _PROTOCOL)
    columns = clustering_columns(facts.schema, facts.replay.domain_metadata())
    types = {node.name: node.type for node in nodes(facts.schema)}
    wrong = [f"{name}: {types[name]}" if name in types else name for name in columns
             if name not in types or bound_kind(types[name]) is None]  # fmt: skip
    if not isinstance((json_file(text.encode()) or {}).get("clusteringColumns"), list):
        wrong.append(text)
    claim = "Clustering columns that are missing, or have no bounds"
    yield from of_names("clustering-columns-unknown", wrong, claim, "domainMetadata")
    yield from _without_statistics(facts, [name for name in columns if bound_kind(types.get(name, VOID)) is not None])


def _without_statistics(facts: LogFacts, columns: Sequence[str]) -> Iterator[Finding]:
    """Files without a null count of one of the columns: nothing else is recorded of every column with statistics."""
    columns = [name for name in columns if name not in facts.partition_columns]
    live, schema = facts.stated_files, facts.schema
    if not columns or schema is None or not live.height:
        return
    frame = statistics_frame(live, physical_leaves(schema, columns, facts.partition_columns))
    has_counts = [frame[name].struct.field("null_count").is_not_null() for name in columns]
    silent = live.filter(~pl.select(pl.all_horizontal(has_counts)).to_series())
    claim = f"{count_text(silent.height, 'live file lacks', 'live files lack')} statistics of a clustering column"
    yield from of_files("clustering-columns-without-statistics", silent, claim)


# -- times inside commits

_FROM, _AT = "delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp"


def in_commit_enablement(facts: LogFacts) -> Iterator[Finding]:
    """Properties that say from which version and time on commits carry their time agree with that commit."""
    if facts.in_commit_start is None:
        return
    texts = [facts.properties.get(key) for key in (_FROM, _AT)]
    wrong = None
    if texts.count(None) == 1:
        wrong = f"{_FROM} = {texts[0]}, {_AT} = {texts[1]}"
    elif texts[0] is None:
        wrong = _unrecorded_enablement(facts)
    elif (start := facts.in_commit_start) > facts.log.latest:
        wrong = f"{_FROM} = {start}, and the latest version is {facts.log.latest}"
    else:
        own = next((c.info.in_commit_timestamp for c in facts.records if c.version == start), None)
        if own is not None and str(own) != texts[1]:
            wrong = f"{_AT} = {texts[1]}, and commit v{start} has {own}"
    if wrong is not None:
        claim = "The recorded enablement of in-commit timestamps is wrong"
        yield finding("in-commit-enablement", claim, wrong, _CONFIGURATION)


def _unrecorded_enablement(facts: LogFacts) -> str | None:
    first = facts.records[0] if facts.records else None
    if first is None or first.version > 0 or first.info.in_commit_timestamp is not None or len(facts.records) < 2:
        return None
    if not any(version > 0 and asks_for_in_commit_times(metadata.properties) for version, metadata in facts.metadata):
        return None
    return f"commit v0 has no in-commit timestamp, and {_FROM} is not set"


def catalog_managed(facts: LogFacts) -> Iterator[Finding]:
    """A table that a catalog manages has times inside commits, and commits with a txnId since the catalog does."""
    if facts.features.isdisjoint(CATALOG_FEATURES):
        return
    if facts.in_commit_start is None:
        claim, evidence = (
            "A catalog manages the table, and in-commit timestamps are off",
            "the file times of published commits are later than the commits",
        )
        yield finding("catalog-managed-without-times", claim, evidence, _CONFIGURATION)
    is_managed = False
    silent: list[int] = []
    for commit in facts.records:
        own = commit.protocol
        is_managed = is_managed if own is None else not CATALOG_FEATURES.isdisjoint(own.reader_features or ())
        if is_managed and commit.info.txn_id is None:
            silent.append(commit.version)
    claim = f"{count_text(len(silent), 'commit has', 'commits have')} no txnId in a table that a catalog manages"
    yield from of_commits("commit-without-transaction-id", silent, claim)
