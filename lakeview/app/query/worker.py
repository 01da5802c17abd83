"""A request on standard input to rows on standard output: what a user's query runs in, so that it can be ended.

A process of its own: whatever a query takes, hangs on or brings down is this process, and stopping it needs nobody's
consent. Started by `lakeview.app.query.runner` through `lakeview.app.query.sandbox`; it imports no page.

Standard input: a Request as JSON. Standard output: the rows as an Arrow stream. Standard error: lines that begin with
MARK, each a JSON object: `{"ready": true}` once a request can be read, `{"read": rows so far}`, at the end
`{"counts": ...}` or `{"error": ...}`; other lines are libraries' own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from time import monotonic
from typing import Any, NamedTuple, TextIO

import msgspec
import polars as pl
import polars.selectors as cs

import lakeview as lv
from lakeview import views
from lakeview.model import errors
from lakeview.model.snapshot_sources import as_declared
from lakeview.predicates import predicate
from lakeview.predicates.query import QUERY_TABLE, query, sources_refused

MARK = "\x01"
MAX_RESULT_BYTES = 256 << 20


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is wanted of a table: `sql`, else the changes of commits `start` to `version`, else the rows in which it
    differs from the version `base`, else rows that `where` keeps.

    `names`: what the table is called in `sql`; `limit`: rows at most; `memory`: bytes the process may take; `seconds`
    after which rows that were read are given as they are, 0 for no limit.
    """

    address: str
    version: int
    limit: int
    memory: int
    seconds: float = 0
    sql: str | None = None
    names: tuple[str, ...] = ()
    where: str | None = None
    start: int | None = None
    base: int | None = None


class Answer(NamedTuple):
    """The rows of a request, and what was counted beside them: of a `base`, rows `gained`, `lost` and `read`;
    `stopped`: 1 if the seconds were over before all rows were there."""

    rows: pl.DataFrame
    counts: dict[str, int]


def main(stdin: TextIO = sys.stdin) -> int:
    """Answers one request; 0 with rows, 1 with an error told."""
    _tell(ready=True)
    request = msgspec.json.decode(stdin.read(), type=Request)
    _limit_memory(request.memory)
    try:
        found = answer(request, _row_counter())
    except errors.LakeviewError as error:
        _tell(error=_as_json(error))
        return 1
    _tell(counts=found.counts)
    buffer = BytesIO()
    found.rows.write_ipc_stream(buffer)
    with suppress(BrokenPipeError):  # nobody waits for the rows any more
        sys.stdout.buffer.write(buffer.getbuffer())
        sys.stdout.buffer.flush()
    return 0


def answer(request: Request, on_read: Callable[[int], object]) -> Answer:
    """What a request asks for; `on_read` is called with the number of rows read of the table, batch by batch.

    InvalidRequestError for what polars cannot run, and for a result of more than MAX_RESULT_BYTES.
    """
    table = lv.open_table(request.address)
    counts: dict[str, int] = {}
    try:
        if request.base is not None:
            rows, counts = _difference(table, request, request.base, on_read)
        else:
            rows, counts = _rows(table, request, on_read)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _cannot(request, error) from error
    if (size := rows.estimated_size()) > MAX_RESULT_BYTES:
        actual, limit = views.units.format_bytes(size), views.units.format_bytes(MAX_RESULT_BYTES)
        raise errors.InvalidRequestError(
            f"the result takes {actual}, more than the {limit} that can be shown",
            fix="ask for fewer rows, or fewer columns",
            place="sql",
            kind="over-budget",
        )
    return Answer(rows, counts)


def _difference(
    table: lv.Table, request: Request, base: int, on_read: Callable[[int], object]
) -> tuple[pl.DataFrame, dict[str, int]]:
    left_out = {name for version in (base, request.version) for name in table.snapshot(version).schema.unreadable}
    readable = table.difference(base, request.version).drop(cs.by_name(*left_out, require_all=False))
    changes = _counted(readable, on_read)
    found = views.compare.rows.row_difference(changes, request.limit)
    return found.rows, {"gained": found.gained, "lost": found.lost, "read": found.read}


def _rows(table: lv.Table, request: Request, on_read: Callable[[int], object]) -> tuple[pl.DataFrame, dict[str, int]]:
    if request.start is not None:
        lazy = _counted(table.changes(request.start, request.version), on_read)
    else:
        version = as_declared(table, request.version)
        scan = table.scan(version)
        if unreadable := table.snapshot(version).schema.unreadable:
            scan = scan.drop(unreadable)
        lazy = _query(scan, request, on_read) if request.sql is not None else _filtered(scan, request, on_read)
    if request.sql is not None or not request.seconds:  # a part of an aggregate is no answer
        return lazy.head(request.limit).collect(engine="streaming"), {}
    return rows_until(lazy, request.limit, monotonic() + request.seconds)


def rows_until(lazy: pl.LazyFrame, limit: int, end: float) -> tuple[pl.DataFrame, dict[str, int]]:
    """The first rows, batch by batch, until there are enough or the time is over."""
    batches, rows, stopped = [pl.DataFrame(schema=lazy.collect_schema())], 0, False
    for batch in lazy.head(limit).collect_batches(maintain_order=True, engine="streaming"):
        batches.append(batch)
        rows += batch.height
        if rows >= limit or (stopped := monotonic() > end):
            break
    return pl.concat(batches).head(limit), {"stopped": 1} if stopped else {}


def _query(scan: pl.LazyFrame, request: Request, on_read: Callable[[int], object]) -> pl.LazyFrame:
    found = query(request.sql or "", request.names)
    counted = _counted(scan, on_read)
    context = pl.SQLContext(dict.fromkeys((QUERY_TABLE, *request.names), counted))
    lazy = context.execute(found.text, eager=False)
    # two readers of one text may disagree: what polars made of it is looked at too
    if other := sources_refused(lazy.explain(optimized=False)):
        raise errors.InvalidRequestError(
            f"the query would read a {', '.join(other)} file of its own",
            fix="ask only the table that is open",
            place="sql",
            kind="bad-query",
        )
    return lazy


def _filtered(scan: pl.LazyFrame, request: Request, on_read: Callable[[int], object]) -> pl.LazyFrame:
    return _counted(scan if request.where is None else scan.filter(predicate(request.where)), on_read)


def _counted(rows: pl.LazyFrame, on_read: Callable[[int], object]) -> pl.LazyFrame:
    """The same rows, counted as they pass; filters and choices of columns still reach the files."""

    def passed(batch: pl.DataFrame) -> pl.DataFrame:
        on_read(batch.height)
        return batch

    return rows.map_batches(passed, predicate_pushdown=True, projection_pushdown=True, streamable=True)


def _cannot(request: Request, error: BaseException) -> errors.InvalidRequestError:
    said = str(error).strip().splitlines()
    why = said[0] if said else type(error).__name__
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
    return errors.InvalidRequestError(
        f"the rows cannot be filtered by {request.where}: {why}",
        fix="compare each column with a value of its own type",
        place="where",
    )


def _row_counter() -> Callable[[int], object]:
    total = 0

    def on_read(rows: int) -> None:
        nonlocal total
        total += rows
        _tell(read=total)

    return on_read


def _tell(**said: Any) -> None:
    with suppress(BrokenPipeError):
        sys.stderr.write(f"{MARK}{json.dumps(said)}\n")
        sys.stderr.flush()


def _as_json(error: errors.LakeviewError) -> dict[str, str | None]:
    return {
        "type": type(error).__name__,
        "message": error.message,
        "fix": error.fix,
        "place": error.place,
        "kind": error.kind,
    }


def _limit_memory(size: int) -> None:
    """Sets the most memory this process may take, where the system knows such a limit."""
    try:
        import resource  # not on every system
    except ImportError:
        return
    with suppress(ValueError, OSError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


if __name__ == "__main__":
    ended = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # threads of polars may still hand rows to `_counted`: an interpreter that ends under them aborts, or hangs
    os._exit(ended)
