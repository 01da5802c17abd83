"""The frames that describe a table: the columns that readers make and lookers may count on, one contract a frame."""

import polars as pl

UTC_MILLIS = pl.Datetime("ms", "UTC")

FILES = pl.Schema(
    {
        "path": pl.String(),
        "size": pl.Int64(),
        "records": pl.Int64(),
        "deleted_records": pl.Int64(),
        "modified": UTC_MILLIS,
        "partition_text": pl.String(),
        "deletion_vector": pl.String(),
        "tags": pl.String(),
    }
)
"""One row a live data file. `size` in bytes, null where no file is of the size recorded; `records` physical rows, null
when unknown; `deleted_records` 0 without deletes, null when unknown; `deletion_vector` its unique id. A partitioned
table has also `partition`: a struct of typed values under the columns' names, placed before `partition_text`
("month=3/path=a%2Fb"). Further columns are the format's own."""

COMMITS = pl.Schema(
    {
        "version": pl.Int64(),
        "position": pl.Int64(),
        "parent": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "recorded_timestamp": UTC_MILLIS,
        "timestamp_source": pl.String(),
        "operation": pl.String(),
        "parameters": pl.String(),
        "metrics": pl.String(),
        "engine": pl.String(),
        "client_version": pl.String(),
        "user": pl.String(),
        "files_added": pl.Int64(),
        "files_removed": pl.Int64(),
        "bytes_added": pl.Int64(),
        "bytes_removed": pl.Int64(),
        "records_added": pl.Int64(),
        "records_removed": pl.Int64(),
        "schema_changed": pl.Boolean(),
        "protocol_changed": pl.Boolean(),
        "data_change": pl.Boolean(),
    }
)
"""One row a commit, newest first. `timestamp` is the one time travel uses, `recorded_timestamp` the one the writer
wrote; `parameters` and `metrics` are JSON text. Counts are null where the log does not know."""

VERSIONS = pl.Schema({"version": pl.Int64(), "timestamp": UTC_MILLIS, "readable": pl.Boolean(), "reason": pl.String()})
"""One row a version, newest first; `reason` says why it cannot be read, null when it can. `readable` is null where
it was not checked: what a vacuum removes is unknown then."""

LIFETIMES = pl.Schema(
    {
        "path": pl.String(),
        "deletion_vector": pl.String(),
        "added": pl.Int64(),
        "removed": pl.Int64(),
        "size": pl.Int64(),
        "records": pl.Int64(),
    }
)
"""One row a stay of a file in the table: live in versions `added` to `removed - 1`; `removed` is null while it is
live. `added` is null when the file was there before the oldest version the log still tells about. `size` in bytes;
`records`: live rows, null when unknown."""

SCHEMAS = pl.Schema({"version": pl.Int64(), "timestamp": UTC_MILLIS, "schema": pl.String()})
"""One row a version that changed the schema, oldest first; `schema` is JSON text as recorded."""

ACTIONS = pl.Schema({"kind": pl.String(), "path": pl.String(), "action": pl.String()})
"""One row an action of a commit, in the order recorded; `action` is JSON text as recorded."""

TOMBSTONES = pl.Schema(
    {
        "path": pl.String(),
        "deletion_vector": pl.String(),
        "size": pl.Int64(),
        "deleted": UTC_MILLIS,
        "data_change": pl.Boolean(),
    }
)
"""One row a file removed and not yet forgotten; `deleted` is when the removal happened."""

TRANSACTIONS = pl.Schema({"app_id": pl.String(), "version": pl.Int64(), "last_updated": UTC_MILLIS})
"""One row an application that records its progress in the table."""

DOMAIN_METADATA = pl.Schema({"domain": pl.String(), "configuration": pl.String()})
"""One row a metadata domain; `configuration` is text as recorded."""

RULES = pl.Schema({"column": pl.String(), "kind": pl.String(), "name": pl.String(), "rule": pl.String()})
"""One row a rule that a table states besides its types. `column`: the leaf or nested column it is about, named as in
STATISTICS, null for a rule of the whole table; `kind`: check, default, generated, identity, invariant, length,
collation, type change, clustering or identifier; `name`: a constraint's; `rule`: expression or fact as text."""

PLAN = pl.Schema({"path": pl.String(), "kept": pl.Boolean(), "reason": pl.String(), "size": pl.Int64()})
"""One row a live file: would a filter read it; `reason` is partition, statistics or kept; `size` in bytes."""

CHANGES = pl.Schema(
    {
        "_change_type": pl.String(),
        "_commit_version": pl.Int64(),
        "_commit_timestamp": pl.Datetime("us", "UTC"),
    }
)
"""The columns that rows of changes have after the table's own (one of theirs that bears such a name is suffixed `_`).
`_change_type`: insert, delete, update_preimage or update_postimage; `_commit_timestamp` is the one time travel uses."""

CHANGES_PLAN = pl.Schema(
    {
        "version": pl.Int64(),
        "change_type": pl.String(),
        "path": pl.String(),
        "rows": pl.Int64(),
        "size": pl.Int64(),
        "source": pl.String(),
    }
)
"""One row a file that reading changes reads, by version. `change_type`: insert or delete, null for a change data file,
which says it row by row; `rows` it gives, null when unknown; `size` of the file in bytes; `source`: feed where writers
recorded changes, derived where whole files are compared and rows that were only copied are deleted and inserted."""

REFS = pl.Schema(
    {
        "name": pl.String(),
        "kind": pl.String(),
        "version": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "default": pl.Boolean(),
        "min_versions_kept": pl.Int64(),
        "max_version_age_ms": pl.Int64(),
        "max_ref_age_ms": pl.Int64(),
    }
)
"""One row a branch or tag, the default branch first, then by name. `kind`: branch or tag; `version` it points at, with
that version's `timestamp`, null where it is gone; `default`: the branch that is read when none is named. The last three
are its retention as declared, null where the table's own holds: how many versions and versions of which age the branch
keeps, and after which age the ref itself may go; ages in milliseconds."""

PARTITION_FIELD = pl.Struct(
    {"field_id": pl.Int64(), "name": pl.String(), "column": pl.String(), "transform": pl.String()}
)
"""One part of a partition spec. `column`: the source, several joined by commas, as the current schema (else the newest
that had it) names it; `transform` as recorded."""

PARTITION_SPECS = pl.Schema(
    {
        "spec_id": pl.Int64(),
        "fields": pl.List(PARTITION_FIELD),
        "text": pl.String(),
        "since": UTC_MILLIS,
        "recorded_in": pl.String(),
        "default": pl.Boolean(),
    }
)
"""One row a way the table is or was partitioned, oldest first. `text`: for people (`month of day, id into 16 buckets`);
`since` and `recorded_in`: moment and name of the oldest metadata file that has it, null where an older file, which
could have it too, is gone; `default`: new files are written this way."""

FORMAT_VERSIONS = pl.Schema(
    {"format_version": pl.Int64(), "version": pl.Int64(), "since": UTC_MILLIS, "recorded_in": pl.String()}
)
"""One row a format version that the table has or had, oldest first. `since` and `recorded_in`: moment and name of the
metadata file that brought it, `version` the snapshot committed in that file, null where it had none of its own; all
null where an older file, which could have it too, is gone."""

SORT_FIELD = pl.Struct(
    {"column": pl.String(), "transform": pl.String(), "direction": pl.String(), "nulls": pl.String()}
)
"""One part of a sort order. `direction`: asc or desc; `nulls`: first or last; null where the order does not say."""

SORT_ORDERS = pl.Schema(
    {"order_id": pl.Int64(), "fields": pl.List(SORT_FIELD), "text": pl.String(), "default": pl.Boolean()}
)
"""One row a declared order of rows inside files, by id; `text` for people; the order that sorts nothing is left out."""

MANIFESTS = pl.Schema(
    {
        "path": pl.String(),
        "content": pl.String(),
        "size": pl.Int64(),
        "spec_id": pl.Int64(),
        "sequence_number": pl.Int64(),
        "added_version": pl.Int64(),
        "files_added": pl.Int64(),
        "files_existing": pl.Int64(),
        "files_deleted": pl.Int64(),
        "rows_added": pl.Int64(),
        "rows_existing": pl.Int64(),
        "rows_deleted": pl.Int64(),
        "partitions": pl.String(),
        "overlaps": pl.Int64(),
    }
)
"""One row a file that lists files of one version, as recorded. `content`: data or deletes; `size` in bytes; counts are
null where the writer left them out; `partitions`: the ranges of its files' partition values (`month 2013-05 to
2013-07`), null where it has none; `overlaps`: how many other manifests of the same content and spec have ranges that
meet these in every part, null where there are no ranges, or too many manifests to compare."""

STATISTICS_FILES = pl.Schema(
    {
        "path": pl.String(),
        "version": pl.Int64(),
        "kind": pl.String(),
        "blob_type": pl.String(),
        "columns": pl.List(pl.String()),
        "ndv": pl.Int64(),
        "size": pl.Int64(),
        "present": pl.Boolean(),
    }
)
"""One row a blob of a statistics file, and one a file of partition statistics. `kind`: table or partition; `version`
it was computed for; `columns` it is about, named as in STATISTICS; `ndv`: distinct values as its writer estimated them,
null where it does not say; `size` of the file in bytes; `present`: whether the file is in the store, null when that
could not be asked. Nothing of this is needed to read the table."""

SNAPSHOT_LOG = pl.Schema(
    {
        "timestamp": UTC_MILLIS,
        "version": pl.Int64(),
        "on_current_line": pl.Boolean(),
        "why": pl.String(),
    }
)
"""One row a time another version became the current one, oldest first. `on_current_line`: the version is the current
one or one it grew from; null where it has expired. `why`: first, commit (it grew from the one before), rollback (the
one before grew from it), moved (neither), again (the same), or expired."""

LOG_FILES = pl.Schema(
    {
        "name": pl.String(),
        "kind": pl.String(),
        "version": pl.Int64(),
        "size": pl.Int64(),
        "modified": UTC_MILLIS,
    }
)
"""One row a file of a table's log, as one listing finds it. `kind`: commit, checkpoint or other; `version` in its name,
null where none is; `size` in bytes; `modified` null where the store does not tell."""

AUDIT = pl.Schema(
    {
        "version": pl.Int64(),
        "position": pl.Int64(),
        "timestamp": UTC_MILLIS,
        "operation": pl.String(),
        "engine": pl.String(),
        "client_version": pl.String(),
        "law": pl.String(),
        "verdict": pl.String(),
        "reason": pl.String(),
        "expected": pl.String(),
        "found": pl.String(),
        "path": pl.String(),
    }
)
"""One row a commit and law that applies to it, oldest first. `law`: its id in `lakeview.model.laws`; `verdict`: proven,
violated or unknowable; `reason`: why it is unknowable, or what is wrong; `expected` and `found`: the figures that
differ; `path`: the first file of a violation. `position`, `timestamp`, `operation`, `engine` and `client_version` as in
COMMITS."""
