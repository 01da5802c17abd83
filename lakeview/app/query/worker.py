"""A request on standard input to rows on standard output: what a user's query runs in, so that it can be ended.

A process of its own: a query that takes all memory, hangs or crashes ends this process alone, and it can be killed at
any time. Started by `lakeview.app.query.runner` through `lakeview.app.query.sandbox`; it imports no page.

Standard input: a Request as JSON on one line; closed after it, it asks for the rows so far. Standard output: the rows
as an Arrow stream. Standard error: lines that begin with MARK, each a JSON object: `{"ready": true}` once a request can
be read, `{"read": rows so far}`, at the end `{"counts": ...}` or `{"error": ...}`; other lines are libraries' own.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from io import BytesIO
from time import monotonic
from typing import Any, TextIO

import msgspec
import polars as pl
import polars.selectors as cs

import lakeview as lv
from lakeview import views
from lakeview.app.query.answers import Answer, DifferenceSoFar, ProfileSoFar, RowsSoFar
from lakeview.app.query.process import MARK
from lakeview.app.query.request import MAX_RESULT_BYTES, Request
from lakeview.app.query.sandbox import limit_memory
from lakeview.model import errors
from lakeview.model.snapshot_sources import as_declared
from lakeview.predicates import predicate
from lakeview.predicates.evaluation import reason
from lakeview.predicates.query import QUERY_TABLE, query, sources_refused
from lakeview.views.data.preview import sample_rows
from lakeview.views.data.profile import profile

_OnRows = Callable[[pl.DataFrame], object]

_STEP = 0.1
_AHEAD = ("lakeview.discovery", "pandas")
"""Loaded before there is a request: readers of all formats, and what pyarrow imports with its first array."""


def main(stdin: TextIO = sys.stdin) -> int:
    """Answers one request; 0 with rows, or without a request, 1 with an error reported."""
    for name in _AHEAD:
        import_module(name)
    _report(ready=True)
    text = stdin.readline().strip()
    if not text:  # started ahead of a request, and its server has ended
        return 0
    request = msgspec.json.decode(text, type=Request)
    limit_memory(request.memory)
    partial, answering = rows_so_far(request), threading.Lock()
    if request.can_stop:
        deadline = monotonic() + request.seconds
        cancellation = threading.Event()
        threading.Thread(target=_await_end, args=(stdin, cancellation), daemon=True).start()
        threading.Thread(target=_give_part, args=(partial, answering, deadline, cancellation), daemon=True).start()
    try:
        complete = answer(request, _row_counter(), partial)
    except errors.LakeviewError as error:
        _report(error=errors.error_record(error))
        return 1
    if not answering.acquire(blocking=False):
        threading.Event().wait()  # the timer's thread writes the part, and ends the process
    _write(complete)
    return 0


def rows_so_far(request: Request) -> RowsSoFar | ProfileSoFar | DifferenceSoFar:
    """What collects the part of an answer to this request."""
    if request.base is not None:
        return DifferenceSoFar(request.limit)
    return ProfileSoFar() if request.profile else RowsSoFar(request.limit)


def _await_end(stdin: TextIO, cancellation: threading.Event) -> None:
    stdin.read()
    cancellation.set()


def _give_part(
    partial: RowsSoFar | ProfileSoFar | DifferenceSoFar,
    answering: threading.Lock,
    deadline: float,
    cancellation: threading.Event,
) -> None:
    """Answers with the rows so far when cancelled; else at the deadline, or with the first ones that come after it. The
    runner ends this process when its patience is over."""
    while (seconds := deadline - partial.seconds_to_answer - monotonic()) > 0 and not cancellation.is_set():
        cancellation.wait(min(seconds, _STEP))
    while not (cancellation.is_set() or partial.first_rows.wait(_STEP)):
        pass
    part = partial.answer()
    if answering.acquire(blocking=False):
        if part is not None:
            _write(Answer(part.rows, {**part.counts, "cancelled": 1} if cancellation.is_set() else part.counts))
        os._exit(0 if part is not None else 1)


def _write(answer: Answer) -> None:
    _report(counts=answer.counts)
    buffer = BytesIO()
    answer.rows.write_ipc_stream(buffer)
    with suppress(BrokenPipeError):  # the runner no longer waits for the rows
        sys.stdout.buffer.write(buffer.getbuffer())
        sys.stdout.buffer.flush()


def answer(
    request: Request, on_read: _OnRows, partial: RowsSoFar | ProfileSoFar | DifferenceSoFar | None = None
) -> Answer:
    """What a request asks for; `on_read` is called with each batch of rows that was read of the table, `partial`
    collects what is there if the time is over (`rows_so_far`).

    InvalidRequestError for what polars cannot run, and for a result of more than MAX_RESULT_BYTES.
    """
    table = lv.open_table(request.address)
    so_far = partial or rows_so_far(request)
    counts: dict[str, int] = {}
    try:
        if isinstance(so_far, DifferenceSoFar):
            rows, counts = _difference(table, request, on_read, so_far)
        elif isinstance(so_far, ProfileSoFar):
            rows, row_count = profile(_filter_rows(table, request, on_read), so_far.add)
            counts = {"rows": row_count}
        else:
            rows = _rows(table, request, on_read, so_far.add)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _cannot(table, request, error) from error
    if (size := rows.estimated_size()) > MAX_RESULT_BYTES:
        actual, limit = views.units.format_bytes(size), views.units.format_bytes(MAX_RESULT_BYTES)
        raise errors.InvalidRequestError(
            f"the result takes {actual}, more than the {limit} that can be shown",
            fix="ask for fewer rows, or fewer columns" if request.sql is not None else request.cheaper,
            place="rows" if request.sql is None else "sql",
            kind="over-budget",
        )
    return Answer(rows, counts)


def _difference(table: lv.Table, request: Request, on_read: _OnRows, so_far: DifferenceSoFar) -> Answer:
    base = request.version if request.base is None else request.base
    left_out = {name for version in (base, request.version) for name in table.snapshot(version).schema.unreadable}
    sides = table.difference_sides(base, request.version)
    for number, (kind, changes) in enumerate(sides, 1):
        readable = changes.drop(cs.by_name(*left_out, require_all=False))
        so_far.begin_side(readable.collect_schema(), remaining_kind=kind if number == len(sides) else None)
        for batch in readable.collect_batches():
            on_read(batch)
            so_far.add(batch)
    return so_far.whole()


def _rows(table: lv.Table, request: Request, on_read: _OnRows, on_found: _OnRows) -> pl.DataFrame:
    if request.skips_missing:
        return _rows_of_other_files(table, request, on_read, on_found)
    if request.start is not None:
        changes = table.changes(request.start, request.version)
        if request.change_types:  # skips the files of others, which may be vacuumed
            changes = changes.filter(pl.col("_change_type").is_in(request.change_types))
        lazy = _report_batches(changes, on_read)
    else:
        is_query = request.sql is not None
        lazy = _query(_scan(table, request), request, on_read) if is_query else _filter_rows(table, request, on_read)
        if request.seed is not None:
            return sample_rows(lazy, request.limit, request.seed)
    return _report_batches(lazy, on_found).head(request.limit).collect(engine="streaming")


def _rows_of_other_files(table: lv.Table, request: Request, on_read: _OnRows, on_found: _OnRows) -> pl.DataFrame:
    """The first rows of the files that are in the store, which it is asked for one by one; DataFileMissingError where
    none is."""
    parts, room, missing = [], request.limit, None
    for path in table.files(as_declared(table, request.version), ["path"])["path"]:
        one_file = msgspec.structs.replace(request, paths=(path,), limit=room, skips_missing=False)
        try:
            parts.append(_rows(table, one_file, on_read, on_found))
        except errors.DataFileMissingError as error:
            missing = error
            continue
        room -= parts[-1].height
        if not room:
            break
    if missing is not None and not parts:
        raise missing
    return pl.concat(parts)


def _scan(table: lv.Table, request: Request) -> pl.LazyFrame:
    scan = table.scan(as_declared(table, request.version), paths=request.paths)
    return scan.drop(cs.by_name(*_schema(table, request).unreadable))


def _query(scan: pl.LazyFrame, request: Request, on_read: _OnRows) -> pl.LazyFrame:
    text = query(request.sql or "", request.names).text
    context = pl.SQLContext(dict.fromkeys((QUERY_TABLE, *request.names), _report_batches(scan, on_read)))
    lazy = context.execute(text, eager=False)
    # two readers of one text may disagree: what polars made of it is looked at too
    if other := sources_refused(lazy.explain(optimized=False)):
        raise errors.InvalidRequestError(
            f"the query would read a {', '.join(other)} file of its own",
            fix="ask only the table that is open",
            place="sql",
            kind="bad-query",
        )
    return lazy


def _filter_rows(table: lv.Table, request: Request, on_read: _OnRows) -> pl.LazyFrame:
    scan = _scan(table, request)
    if request.where is not None:
        scan = scan.filter(predicate(request.where, _schema(table, request)))
    return _report_batches(scan, on_read)


def _schema(table: lv.Table, request: Request) -> lv.Schema:
    return table.snapshot(as_declared(table, request.version)).schema


def _report_batches(rows: pl.LazyFrame, on_rows: _OnRows) -> pl.LazyFrame:
    """The same rows, of which each batch is reported; filters and choices of columns still reach the files."""

    def pass_batch(batch: pl.DataFrame) -> pl.DataFrame:
        on_rows(batch)
        return batch

    return rows.map_batches(pass_batch, predicate_pushdown=True, projection_pushdown=True, streamable=True)


def _cannot(table: lv.Table, request: Request, error: BaseException) -> errors.InvalidRequestError:
    why = reason(error)
    if request.sql is not None:
        return errors.InvalidRequestError(
            f"the query cannot be run: {why}", fix="correct it and run it again", place="sql", kind="bad-query"
        )
    if request.base is not None:
        return errors.InvalidRequestError(
            f"the rows of the two versions cannot be compared: {why}",
            fix="choose versions closer together",
            place="rows",
        )
    if request.where is None:
        return errors.InvalidRequestError(f"the rows cannot be read: {why}", fix="choose another version", place="rows")
    schema = _schema(table, request)
    types = views.pruning.plan.types_text(predicate(request.where, schema), schema)
    return errors.InvalidRequestError(
        f"the rows cannot be filtered by {request.where}: {why}",
        fix=f"compare each column with a value of its own type{f': {types}' if types else ''}",
        place="where",
    )


def _row_counter() -> _OnRows:
    total = 0

    def on_read(batch: pl.DataFrame) -> None:
        nonlocal total
        total += batch.height
        _report(read=total)

    return on_read


def _report(**report: Any) -> None:
    with suppress(BrokenPipeError):
        sys.stderr.write(f"{MARK}{json.dumps(report)}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    exit_code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # threads of polars may still hand rows to `_report_batches`: an interpreter that ends under them aborts, or hangs
    os._exit(exit_code)
