"""Laws of an audit: what the specifications ask of every commit, one value a law, found by its id."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

DELTA, ICEBERG = "delta", "iceberg"


class Verdict(StrEnum):
    """What a log shows of one law in one commit; ordered from the worst."""

    VIOLATED = "violated"
    UNKNOWABLE = "unknowable"
    PROVEN = "proven"


@dataclass(frozen=True, slots=True)
class Law:
    """One promise of a commit. `sentence`: what the specification, or the operation's meaning, asks for; `section`: of
    the specification; `remedy`: what to do about a commit that violates it."""

    id: str
    table_format: str
    title: str
    sentence: str
    section: str
    remedy: str

    @property
    def rule(self) -> str:
        """The specification and its section: `Delta protocol, Add File and Remove File`."""
        name = "Delta protocol" if self.table_format == DELTA else "Iceberg spec"
        return f"{name}, {self.section}"


_FILES = "Add File and Remove File"
_PROVENANCE = "Commit Provenance Information"
_RESTORE = "compare the rows with the version before, then restore that version or write the rows again"

_LAWS = (
    Law(
        "rearrangement-conserves-rows", DELTA, "A commit with dataChange=false conserves rows",
        "An action with dataChange=false, combined with the other actions of its version, only rearranges existing "
        "data or adds new statistics: the live rows added equal the live rows removed.",
        _FILES, "rows were lost or multiplied by maintenance: restore the version before, and upgrade the engine",
    ),
    Law(
        "rearrangement-conserves-nulls", DELTA, "A commit with dataChange=false conserves null counts",
        "Rows that are only rearranged have the same nulls in every column, before and after.",
        _FILES, "values were lost by maintenance: restore the version before, and upgrade the engine",
    ),
    Law(
        "remove-names-live-file", DELTA, "A remove names a live file",
        "A remove action retracts a file (path and deletion vector id) that is part of the version before it.",
        _FILES, "the writer used a stale version of the table: " + _RESTORE,
    ),
    Law(
        "one-action-per-file", DELTA, "A commit has one action for each file",
        "Actions of a version have no order: it is not valid for two of them to be about the same path and deletion "
        "vector.",
        _FILES, "readers may apply either action: write the files of the commit again in a new one",
    ),
    Law(
        "removed-file-stays-removed", DELTA, "A file that was removed does not come back",
        "Data files are immutable and have unique names: only RESTORE adds a file again that was removed before.",
        _FILES, "deleted rows came back: remove the file again, and check the writer's conflict detection",
    ),
    Law(
        "one-vector-per-path", DELTA, "A path is live with one deletion vector",
        "The removal of a file with its old deletion vector and the addition with the new one are one commit: a path "
        "is never live twice.",
        "Deletion Vectors", "readers give the file's rows twice: remove the older entry in a new commit",
    ),
    Law(
        "vectors-only-grow", DELTA, "Deletion vectors only grow",
        "A commit that replaces the deletion vector of a file deletes further rows of it; only RESTORE brings rows "
        "back.",
        "Deletion Vectors", "deleted rows came back: delete them again, and check the writer's conflict detection",
    ),
    Law(
        "append-removes-nothing", DELTA, "An append removes nothing",
        "A commit that appends, or says that it is a blind append, has no remove action.",
        _PROVENANCE, _RESTORE,
    ),
    Law(
        "append-only-table", DELTA, "An append-only table loses no rows",
        "In an append-only table new log entries must not change or remove data: removes have dataChange=false.",
        "Append-only Tables", "restore the rows from the version before; exclude the writer that ignores appendOnly",
    ),
    Law(
        "overwrite-leaves-own-files", DELTA, "An overwrite of the table leaves only its own files",
        "After a write in mode Overwrite without a predicate, the live files are those that the commit added.",
        _PROVENANCE, "rows of two writes are live at once: overwrite the table again",
    ),
    Law(
        "metrics-equal-actions", DELTA, "The metrics equal the actions",
        "operationMetrics counts what the commit's own actions add and remove.",
        _PROVENANCE, "trust the actions; the writer counts wrongly, or the commit was changed afterwards",
    ),
    Law(
        "row-counts-fit-operation", DELTA, "The row counts fit the operation",
        "An UPDATE conserves the number of rows, a DELETE lowers it by the rows that it reports as deleted, a MERGE "
        "changes it by the rows that it reports as inserted and deleted. Of a commit that does more than its name says "
        "all rows count that it reports as deleted or inserted.",
        _PROVENANCE, _RESTORE,
    ),
    Law(
        "reads-unchanged", DELTA, "What the operation read had not changed",
        "Between the version that an operation read (readVersion) and its own, no other commit changed what it read.",
        "Delta Log Entries", "an update was lost or applied to stale rows: run the operation again, and check the "
        "writer's conflict detection",
    ),
    Law(
        "restore-equals-target", DELTA, "A restore equals its target version",
        "After RESTORE the live files (path and deletion vector id) are those of the version it restores.",
        _PROVENANCE, "run RESTORE again with an engine that implements it",
    ),
    Law(
        "protocol-keeps-features", DELTA, "The protocol loses no feature",
        "A protocol action keeps what the protocol before it required, unless the operation drops a feature.",
        "Protocol Evolution", "older writers may now ignore what the table requires: upgrade the protocol again",
    ),
    Law(
        "row-ids-unique", DELTA, "Row ids are not used twice",
        "Fresh row ids are above the high-water mark of the version before, and no two files share one.",
        "Row Tracking", "row ids are ambiguous: rewrite the files that were added with used ids",
    ),
    Law(
        "in-commit-timestamps-increase", DELTA, "In-commit timestamps increase",
        "The in-commit timestamp of a commit is later than that of the commit before it.",
        "In-Commit Timestamps", "time travel by timestamp is wrong around the commit: go by version",
    ),
    Law(
        "transactions-advance", DELTA, "The transaction versions of an application go up",
        "An application's txn version shows how far it has come; a lower one is legal, and may repeat its writes.",
        "Transaction Identifiers", "check whether the application wrote its batches twice",
    ),
    Law(
        "entries-not-resurrected", ICEBERG, "No entry is resurrected",
        "A file is live in a snapshot if its parent had it, or if the snapshot added it: an EXISTING entry names a "
        "file that was live before.",
        "Manifests", "deleted rows came back: delete the file again, and upgrade the engine",
    ),
    Law(
        "delete-names-live-file", ICEBERG, "A DELETED entry names a live file",
        "An entry with status DELETED names a file that was live in the parent snapshot.",
        "Manifests", "the writer used a stale snapshot: " + _RESTORE,
    ),
    Law(
        "file-added-once", ICEBERG, "A file is live once",
        "An ADDED entry names a file that the parent snapshot does not have.",
        "Manifests", "the file's rows come twice: delete one of its entries",
    ),
    Law(
        "deletes-not-stranded", ICEBERG, "No delete file is stranded",
        "A snapshot adds position deletes and deletion vectors for data files that are live in it and not newer than "
        "the deletes.",
        "Scan Planning", "the deletes have no effect and their rows are live: run the operation again",
    ),
    Law(
        "one-vector-per-file", ICEBERG, "A data file has one deletion vector",
        "At most one deletion vector is allowed per data file in a snapshot.",
        "Deletion Vectors", "readers may apply either vector: rewrite the data file",
    ),
    Law(
        "sequence-numbers-increase", ICEBERG, "Sequence numbers increase",
        "Each commit takes the next sequence number; no file has a later one than its snapshot.",
        "Sequence Numbers", "deletes may apply to the wrong files: have the owner of the table repair the metadata",
    ),
    Law(
        "summary-adds-up", ICEBERG, "The summary adds up",
        "The counts of a snapshot's summary are those of its manifests, and its totals those of the parent with what "
        "was added and deleted.",
        "Snapshots", "trust the manifests; engines that answer from the summary are wrong",
    ),
    Law(
        "append-deletes-nothing", ICEBERG, "An append deletes nothing",
        "The operation append: only data files were added and no files were removed.",
        "Snapshots", _RESTORE,
    ),
    Law(
        "replace-conserves-rows", ICEBERG, "A replace conserves rows",
        "The operation replace: data and delete files were added and removed without changing table data.",
        "Snapshots", "rows were lost, multiplied or resurrected by maintenance: roll back to the parent snapshot",
    ),
)  # fmt: skip

LAWS: Mapping[str, Law] = {law.id: law for law in _LAWS}
"""Every law by its id, in the order in which they are shown."""
