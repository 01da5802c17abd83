"""The kinds of findings of the log doctor: for each id its severity, the rule that is broken, and what to do."""

from collections.abc import Mapping
from typing import NamedTuple

from lakeview.model.findings import Severity

BROKEN, ATTENTION, NOTE = Severity.BROKEN, Severity.ATTENTION, Severity.NOTE


class Kind(NamedTuple):
    """What findings of one id have in common. `section`: of the Delta protocol; `page`: the page that shows it best."""

    severity: Severity
    section: str
    remedy: str | None = None
    page: str = "timeline"


_ADD, _STATISTICS, _VECTORS = "Add File and Remove File", "Per-file Statistics", "Deletion Vectors"
_PARTITION, _SCHEMA, _MAPPING = "Partition Value Serialization", "Schema Serialization Format", "Column Mapping"
_INFO, _TIMES, _FEATURES = "Commit Provenance Information", "In-Commit Timestamps", "Table Features"
_ENTRIES, _CHECKPOINTS, _HINT = "Delta Log Entries", "Checkpoints", "Last Checkpoint File"
_ROWS, _CLUSTERED, _CATALOG = "Row Tracking", "Clustered Table", "Catalog-managed tables"
_V2, _COMPACTION, _PROPERTIES = "V2 Checkpoint Table Feature", "Log Compaction Files", "Table Properties"

_NEW_HINT = "delete it, or write a checkpoint"

KINDS: Mapping[str, Kind] = {
    "check-passed": Kind(Severity.PASS, ""),
    # the files of the log
    "commits-missing": Kind(BROKEN, _ENTRIES, "restore the missing commits from a backup or another copy of the table"),
    "first-commit-without-checkpoint": Kind(NOTE, "Metadata Cleanup"),
    "catalog-managed": Kind(NOTE, "Catalog-managed tables", "ask the catalog for its latest version"),
    "commit-unreadable": Kind(BROKEN, _ENTRIES, "restore the file from a backup or another copy of the table"),
    "latest-version-not-rebuilt": Kind(BROKEN, "Action Reconciliation"),
    "checkpoint-incomplete": Kind(
        ATTENTION, _CHECKPOINTS, "readers skip it; write a new checkpoint, or delete the remaining parts"
    ),
    "multi-part-with-v2-feature": Kind(
        ATTENTION, _V2, "write V2 checkpoints only: their writer does not follow the feature"
    ),
    "v2-checkpoint-without-feature": Kind(ATTENTION, _V2, "add the feature, or write classic checkpoints"),
    "v2-checkpoint-metadata": Kind(ATTENTION, _V2, "write a new checkpoint: some engines refuse this one"),
    "sidecar-other-size": Kind(
        ATTENTION, _V2, "write a new checkpoint: engines that trust the size cannot read this one"
    ),
    "checkpoint-overdue": Kind(ATTENTION, _CHECKPOINTS, "write a checkpoint; see why the writer does not"),
    "last-checkpoint-unreadable": Kind(
        ATTENTION, _HINT, "delete it, or write a checkpoint: readers then list the folder"
    ),
    "last-checkpoint-without-checkpoint": Kind(ATTENTION, _HINT, _NEW_HINT),
    "last-checkpoint-stale": Kind(NOTE, _HINT),
    "last-checkpoint-checksum": Kind(ATTENTION, "JSON checksum", _NEW_HINT),
    "last-checkpoint-names-missing-file": Kind(ATTENTION, _HINT, _NEW_HINT),
    "last-checkpoint-describes-another": Kind(ATTENTION, _HINT, "write a new checkpoint"),
    # commits one by one
    "action-twice-in-commit": Kind(
        BROKEN, "Actions", "the writer must put one of them into a commit; write the right one again in a new commit"
    ),
    "action-twice-for-one-key": Kind(
        BROKEN, "Actions", "the writer must put one of them into a commit: readers may take either"
    ),
    "file-action-out-of-turn": Kind(
        BROKEN, _ADD, "readers disagree on such a commit: rewrite the files named in a new commit"
    ),
    "read-version-not-older": Kind(
        ATTENTION, _INFO, "a commit was renamed or copied from another table, or its writer counts wrongly"
    ),
    "append-only-files-removed": Kind(
        BROKEN,
        "Append-only Tables",
        "restore the rows from the version before; keep the writer out that ignores delta.appendOnly",
    ),
    "commit-times-decrease": Kind(
        ATTENTION,
        _INFO,
        "time travel by moment moves such commits forward; turn on in-commit timestamps, or keep file times"
        " when copying",
    ),
    "in-commit-timestamp-missing": Kind(
        BROKEN, _TIMES, "the writer ignores inCommitTimestamp: keep it out; readers fall back on the file's time"
    ),
    "commit-info-not-first": Kind(ATTENTION, _TIMES, "the writer must put commitInfo first"),
    "in-commit-timestamps-decrease": Kind(BROKEN, _TIMES, "time travel by moment is wrong around them: go by version"),
    "metrics-count-empty-files": Kind(NOTE, _INFO),
    "metrics-disagree": Kind(
        ATTENTION, _INFO, "go by the actions; the writer counts wrongly, or the commit was changed afterwards"
    ),
    # checkpoints, checksums and compactions
    "checkpoint-unreadable": Kind(BROKEN, _CHECKPOINTS),
    "checkpoint-disagrees": Kind(
        BROKEN,
        "Action Reconciliation",
        "readers that start from it see another table: delete it while its commits are there, and write a new one",
    ),
    "checksum-disagrees": Kind(
        ATTENTION,
        "Version Checksum File",
        "the log wins; engines that trust checksums give wrong counts or refuse: delete the files",
    ),
    "checksum-unreadable": Kind(NOTE, "Version Checksum File"),
    "log-compaction-not-reconciled": Kind(
        ATTENTION,
        _COMPACTION,
        "engines that read compactions count files wrongly: delete these, the commits say it all",
    ),
    "log-compaction-unreadable": Kind(ATTENTION, _COMPACTION, "delete it: the commits say it all"),
    "in-commit-enablement": Kind(
        ATTENTION, _TIMES, "have the engine that wrote it turn in-commit timestamps off and on"
    ),
    # what features in force ask for
    "catalog-managed-without-times": Kind(ATTENTION, _CATALOG, "have the catalog turn in-commit timestamps on"),
    "commit-without-transaction-id": Kind(NOTE, _CATALOG),
    "iceberg-compatibility": Kind(
        ATTENTION,
        _FEATURES,
        "a conversion to Iceberg may fail, or its readers read wrong rows: set right what is named, or turn it off",
    ),
    "row-tracking-columns-unnamed": Kind(
        BROKEN, _ROWS, "readers cannot tell ids of rows: turn row tracking off and on"
    ),
    "row-tracking-columns-taken": Kind(BROKEN, _ROWS, "rename the column of the table; turn row tracking off and on"),
    "row-tracking-suspended": Kind(ATTENTION, _ROWS, "set delta.rowTrackingSuspended to false"),
    "row-ids-missing": Kind(BROKEN, _ROWS, "turn row tracking off and on: every live file gets ids", "files"),
    "row-ids-twice": Kind(BROKEN, _ROWS, "rows cannot be told apart by their ids: write these files again", "files"),
    "row-id-mark-too-low": Kind(BROKEN, _ROWS, "have the engine that wrote it record the highest id that rows have"),
    "clustered-and-partitioned": Kind(ATTENTION, _CLUSTERED, "write the rows into a table that is one of both"),
    "clustering-columns-unknown": Kind(ATTENTION, _CLUSTERED, "name other columns to cluster by", "schema"),
    "clustering-columns-without-statistics": Kind(
        ATTENTION, _CLUSTERED, "no filter skips them: recompute the statistics of these files", "files"
    ),
    # protocol and properties
    "protocol-unknown": Kind(
        BROKEN,
        "Protocol Evolution",
        "use an engine that wrote this table; if nothing did, restore the protocol action",
    ),
    "reader-three-without-writer-seven": Kind(BROKEN, _FEATURES, "raise the writer version and list the features"),
    "reader-two-without-writer-five": Kind(ATTENTION, "Reader Version Requirements", "raise the writer version to 5"),
    "feature-list-missing": Kind(BROKEN, _FEATURES),
    "feature-list-superfluous": Kind(ATTENTION, _FEATURES, "no engine has to look at them: raise the versions"),
    "reader-feature-not-for-writers": Kind(
        BROKEN, _FEATURES, "writers may break what they do not know of: list them for writers too"
    ),
    "writer-feature-not-for-readers": Kind(BROKEN, _FEATURES, "list them for readers too"),
    "feature-undeclared": Kind(
        ATTENTION, _FEATURES, "add the features to the protocol, or undo what needs them: engines may ignore it"
    ),
    "feature-unused": Kind(NOTE, _FEATURES),
    "domain-without-feature": Kind(
        ATTENTION, "Domain Metadata", "add the feature: writers that do not know of it drop the domains"
    ),
    "property-misspelt": Kind(
        ATTENTION, _PROPERTIES, "set the property by its right name, and unset this one", "overview"
    ),
    "property-unknown": Kind(NOTE, _PROPERTIES, page="overview"),
    "property-value-refused": Kind(ATTENTION, _PROPERTIES, "set a value of the right kind", "overview"),
    # the schema
    "schema-missing": Kind(ATTENTION, _SCHEMA, "set a schema with the engine that wrote it", "schema"),
    "schema-unusable": Kind(BROKEN, _SCHEMA, page="schema"),
    "column-name-twice": Kind(BROKEN, _SCHEMA, "rename one of them: most engines tell no case apart", "schema"),
    "column-type-unknown": Kind(
        ATTENTION, _SCHEMA, "rows of it can only be read by the engine that wrote them", "schema"
    ),
    "only-partition-columns": Kind(
        ATTENTION, "Change Metadata", "most engines refuse such a table: keep a column in the files", "schema"
    ),
    "column-mapping-missing": Kind(
        BROKEN, _MAPPING, "the writer ignores column mapping: restore the metaData action before it", "schema"
    ),
    "column-mapping-id-shared": Kind(
        BROKEN, _MAPPING, "ids are unique in the whole schema: restore the metaData action", "schema"
    ),
    "physical-name-shared": Kind(BROKEN, _MAPPING, "physical names are unique: restore the metaData action", "schema"),
    "max-column-id-too-low": Kind(ATTENTION, _MAPPING, page="schema"),
    "type-change-unsupported": Kind(
        BROKEN, "Type Widening", "restore the metaData action before it, or write the column again", "schema"
    ),
    # live files
    "files-outside-table": Kind(
        ATTENTION, _ADD, "copy the files into the table, or allow their folder if you trust its writer", "files"
    ),
    "live-files-missing": Kind(
        BROKEN,
        "Data Files",
        "restore them from a backup, or restore the table to a version that does without",
        "files",
    ),
    "live-files-without-size": Kind(
        BROKEN, _ADD, "the sizes of this table are wrong: see who wrote the add action", "files"
    ),
    "live-files-other-size": Kind(
        ATTENTION, _ADD, "engines that trust the size cannot read it: see who replaced the file", "files"
    ),
    "deletion-vector-files-missing": Kind(
        BROKEN, _VECTORS, "restore it from a backup: without it deleted rows would come back", "files"
    ),
    "deletion-vector-unreadable": Kind(BROKEN, _VECTORS, "restore the table to the version before", "files"),
    "orphan-files": Kind(NOTE, "Data Files", page="files"),
    "file-live-twice": Kind(BROKEN, _ADD, "its rows come twice: remove the older entry in a new commit", "files"),
    "partition-value-missing": Kind(
        BROKEN, _PARTITION, "readers take it as null or fail: write these files again", "partitions"
    ),
    "partition-value-superfluous": Kind(
        ATTENTION, _PARTITION, "the files were written for another partitioning: write them again", "partitions"
    ),
    "partition-value-of-other-type": Kind(
        BROKEN, _PARTITION, "rows of these files cannot be read: write them again", "partitions"
    ),
    # statistics
    "rows-not-counted": Kind(NOTE, _STATISTICS, "no filter can skip them: write them again with statistics", "files"),
    "negative-counts": Kind(BROKEN, _STATISTICS, "write the statistics of these files again", "files"),
    "deletion-vector-cardinality": Kind(
        BROKEN, _VECTORS, "the counts of this table are wrong: write the file again", "files"
    ),
    "deletion-vector-without-row-count": Kind(
        BROKEN, _VECTORS, "write the file again: how many rows are left is unknown", "files"
    ),
    "statistics-contradictory": Kind(
        BROKEN, _STATISTICS, "filters may lose rows: write the statistics of these files again", "files"
    ),
    "bounds-claimed-tight": Kind(
        NOTE,
        _STATISTICS,
        "true only if the writer computed the statistics again without the deleted rows",
        "files",
    ),
}
