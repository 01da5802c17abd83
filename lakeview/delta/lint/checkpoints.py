"""Do checkpoints, checksums and compactions say what the commits say?"""

import json
from collections.abc import Iterator, Mapping

import polars as pl

from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import differing, finding, of_names, some
from lakeview.delta.log.actions import Metadata, Protocol, version_text
from lakeview.delta.log.checkpoints import UNREADABLE, Checkpoint
from lakeview.delta.log.file_actions import IDENTITY
from lakeview.delta.log.log_segment import CheckpointFiles
from lakeview.delta.log.paths import SIDECARS
from lakeview.model.errors import AccessDeniedError, CorruptTableError, UnsupportedTableError
from lakeview.model.findings import Finding
from lakeview.model.printable import count_text

_BUDGET = 256 << 20
"""Bytes of checkpoints that are compared, newest first; one at least."""

Pair = tuple[str, object, object]


def agree_with_replay(facts: LogFacts) -> Iterator[Finding]:
    """Every checkpoint against a replay from an older base: files by key, sizes, rows, protocol, metadata, txns."""
    spent = 0
    for files in reversed(facts.checkpoints):
        base = _base(facts, files)
        size = facts.size_of(files)
        if spent and spent + size > _BUDGET:
            return
        spent += size
        try:
            wrong = list(_disagreements(facts, files, base)) if base is not None else []
            # read it even where nothing older is there to compare it with
            inner = list(_inside(facts.log.checkpoint(files)))
        except (CorruptTableError, AccessDeniedError) as error:
            claim = f"The checkpoint of v{files.version} cannot be read"
            yield finding("checkpoint-unreadable", claim, error.message, files.names[0], remedy=error.fix)
            continue
        except UnsupportedTableError:
            continue
        if wrong or inner:
            claim = f"The checkpoint of v{files.version} disagrees with the commits" if wrong else inner[0]
            evidence = differing(wrong) if wrong else inner[-1]
            yield finding("checkpoint-disagrees", claim, evidence, files.names[0])


def v2_structure(facts: LogFacts) -> Iterator[Finding]:
    """A checkpoint with a UUID in its name describes its own version, once, and its sidecars have the sizes that it
    records."""
    names: list[str] = []
    other_sizes: list[str] = []
    for files in (each for each in facts.checkpoints if each.is_v2):
        checkpoint = facts.log.checkpoint(files)
        try:
            versions, sizes = checkpoint.described_versions(), checkpoint.sidecar_sizes
        except UNREADABLE:  # a finding of those that compare checkpoints
            continue
        if versions != [files.version]:
            names += files.names
        present = dict(facts.folder.select("name", "size").iter_rows())
        actual_sizes = {name: present.get(f"{SIDECARS}/{name}") for name in sizes}
        other_sizes += [
            f"{n} has {a:,} bytes, not {sizes[n]:,}" for n, a in actual_sizes.items() if a and a != sizes[n]
        ]
    claim = f"{count_text(len(names), 'V2 checkpoint does', 'V2 checkpoints do')} not describe their version once"
    yield from of_names("v2-checkpoint-metadata", names, claim)
    claim = f"{count_text(len(other_sizes), 'sidecar has', 'sidecars have')} another size than recorded"
    yield from of_names("sidecar-other-size", other_sizes, claim)


def count_compared(facts: LogFacts) -> str | None:
    """How many checkpoints have an older base to be compared with; None without a checkpoint."""
    if not facts.checkpoints:
        return None
    whole = sum(_base(facts, c) is not None for c in facts.checkpoints)
    return (
        f"{count_text(len(facts.checkpoints), 'checkpoint')}, {whole:,} of them compared with a replay of the commits"
    )


_Run = tuple[CheckpointFiles | None, range]
"""A checkpoint, None before version 0, and the commits after it that follow each other."""


def _base(facts: LogFacts, files: CheckpointFiles) -> _Run | None:
    """The run that reaches a checkpoint from something older; None if there is none."""
    return next((run for run in facts.runs if files.version in run[1] and files.version > 0), None)


def _disagreements(facts: LogFacts, files: CheckpointFiles, run: _Run) -> Iterator[Pair]:
    base, commits = run
    actual = facts.log.checkpoint(files)
    older = None if base is None else facts.log.checkpoint(base)
    span = range(commits[0], files.version + 1)
    yield from _files(facts, actual, older, span)
    base_protocol, base_metadata = (None, None) if older is None else older.definition
    protocol, metadata = facts.newest_definition(span[0], span[-1])
    protocol, metadata = protocol or base_protocol, metadata or base_metadata
    own_protocol, own_metadata = actual.definition
    if protocol is not None and own_protocol is not None:
        yield from protocol_differences(own_protocol, protocol)
    elif protocol is not None:
        yield "protocol", "none", version_text(protocol)
    if metadata is not None and own_metadata is not None:
        yield from metadata_differences(own_metadata, metadata)
    elif metadata is not None:
        yield "metaData", "none", metadata.id
    yield from _txns(facts, actual, older, span)
    yield from _domains(facts, actual, older, span)


def _txns(facts: LogFacts, actual: Checkpoint, older: Checkpoint | None, span: range) -> Iterator[Pair]:
    txns = {t.app_id: t for t in ([] if older is None else older.txns())}
    txns |= {t.app_id: t for commit in facts.records if commit.version in span for t in commit.txns}
    own = {t.app_id: t.version for t in actual.txns()}
    # one that the log has and the checkpoint has not may have expired, if it says how old it is
    yield from _differ("txn of", own, {n: t.version for n, t in txns.items() if n in own or t.last_updated is None})


def _domains(facts: LogFacts, actual: Checkpoint, older: Checkpoint | None, span: range) -> Iterator[Pair]:
    domains = {d.domain: d for d in ([] if older is None else older.domains())}
    domains |= {d.domain: d for commit in facts.records if commit.version in span for d in commit.domains}
    own = {d.domain: d.configuration for d in actual.domains() if not d.removed}
    yield from _differ("domain", own, {n: d.configuration for n, d in domains.items() if not d.removed})


def _files(facts: LogFacts, actual: Checkpoint, older: Checkpoint | None, span: range) -> Iterator[Pair]:
    """Live files by key, and of those in both their sizes, rows and deleted rows."""
    tail = facts.events.filter(pl.col("version").is_between(span[0], span[-1])).unique(
        IDENTITY, keep="last", maintain_order=True
    )
    columns = [*IDENTITY, "path", "size", "records", "deleted_records"]
    log_files = tail.filter("added").select(columns)
    if older is not None:
        rest = _live(older).join(tail.select(IDENTITY), on=IDENTITY, how="anti", nulls_equal=True)
        log_files = pl.concat([rest, log_files])
    own = _live(actual)
    missing = log_files.join(own, on=IDENTITY, how="anti", nulls_equal=True)
    extra = own.join(log_files, on=IDENTITY, how="anti", nulls_equal=True)
    if missing.height or extra.height:
        yield "files", own.height, log_files.height
    if missing.height:
        yield (
            f"{count_text(missing.height, 'file')} lost ({some(missing['path'].head(2).to_list(), missing.height)})",
            "gone",
            "live",
        )
    if extra.height:
        names = some(extra["path"].head(2).to_list(), extra.height)
        yield f"{count_text(extra.height, 'file')} too many ({names})", "live", "gone"
    both = own.join(log_files, on=IDENTITY, how="inner", nulls_equal=True, suffix="_log")
    for column in ("size", "records", "deleted_records"):
        wrong = both.filter(pl.col(column) != pl.col(f"{column}_log"))  # unknown on either side is no disagreement
        if wrong.height:
            row = wrong.row(0, named=True)
            yield f"{column} of {row['path']}", row[column], row[f"{column}_log"]


def _live(checkpoint: Checkpoint) -> pl.DataFrame:
    return checkpoint.adds(["size", "records"]).select(*IDENTITY, "path", "size", "records", "deleted_records")


def _inside(checkpoint: Checkpoint) -> Iterator[str]:
    """What is wrong with a checkpoint by itself: a claim, then its evidence."""
    adds = checkpoint.adds([]).select(*IDENTITY, "path")
    twice = adds.filter(pl.struct(IDENTITY).is_duplicated())
    if twice.height:
        yield f"The checkpoint of v{checkpoint.version} holds files twice"
        yield some(twice["path"].unique(maintain_order=True).head(3).to_list(), twice.height)
        return
    both = adds.join(checkpoint.removes().select(IDENTITY), on=IDENTITY, how="semi", nulls_equal=True)
    if both.height:
        yield f"The checkpoint of v{checkpoint.version} holds files as added and as removed"
        yield some(both["path"].head(3).to_list(), both.height)


def protocol_differences(actual: Protocol, log_protocol: Protocol) -> Iterator[Pair]:
    """Where two protocol actions differ; the order of features means nothing, nor does an empty list of them."""
    for name in ("min_reader_version", "min_writer_version"):
        if getattr(actual, name) != getattr(log_protocol, name):
            yield name, getattr(actual, name), getattr(log_protocol, name)
    for name in ("reader_features", "writer_features"):
        own, other = sorted(getattr(actual, name) or ()), sorted(getattr(log_protocol, name) or ())
        if own != other:
            yield name, own, other


def metadata_differences(actual: Metadata, log_metadata: Metadata) -> Iterator[Pair]:
    """Where two metaData actions differ in what readers act upon."""
    for name in ("id", "schema_string", "partition_columns", "properties"):
        own, other = getattr(actual, name) or None, getattr(log_metadata, name) or None
        if own != other and not (name == "schema_string" and _same_document(own, other)):
            yield name, own, other


def _same_document(own: str | None, other: str | None) -> bool:
    """True if two texts are the same JSON: writers space and order it in their own ways."""
    try:
        return own is not None and other is not None and bool(json.loads(own) == json.loads(other))
    except (ValueError, RecursionError):
        return False


def _differ(what: str, actual: Mapping[str, object], log_values: Mapping[str, object]) -> Iterator[Pair]:
    for name in sorted({*actual, *log_values}):
        if actual.get(name) != log_values.get(name):
            yield f"{what} {name}", actual.get(name), log_values.get(name)
