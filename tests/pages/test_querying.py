"""A query in a process of its own: rows, errors as the table tells them, and a budget that ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from threading import BoundedSemaphore, Event, Lock, Thread
from time import monotonic
from typing import Any, ClassVar
from unittest.mock import create_autospec

import polars as pl
import pytest
from streamlit.runtime.scriptrunner import StopException

import lakeview as lv
from lakeview.app.query import budget, idle, runner, worker
from lakeview.app.query.answers import Answer, DifferenceSoFar, ProfileSoFar, RowsSoFar
from lakeview.app.query.idle import IdleProcesses
from lakeview.app.query.process import QueryProcess
from lakeview.app.query.request import Request
from lakeview.app.selection import Selection
from lakeview.delta.table import DeltaTable
from lakeview.discovery import readable_folders
from lakeview.model.errors import DataFileMissingError, InvalidRequestError, LakeviewError
from tests.builders.actions import remove
from tests.builders.feeds import ids_file
from tests.builders.history import DeltaHistory
from tests.pages import tables
from tests.pages.app import open_page, text

PROCESSES = pytest.mark.usefixtures("own_processes")


def request(root: Path, **fields: Any) -> Request:
    defaults: dict[str, Any] = {"address": str(root), "version": 6, "limit": 100, "memory": runner.MEMORY}
    return Request(**defaults | fields)


def ask(root: Path, *, seconds: float = 60, **fields: Any) -> Any:
    return runner.run(request(root, **fields), seconds=seconds, on_wait=lambda _: None).rows


@PROCESSES
def test_a_query_gives_rows(good: Path) -> None:
    rows = ask(good, sql="select month, count(*) as n from flights group by month order by month", names=("flights",))
    assert rows.rows() == [(1, 20), (2, 20), (3, 20)]


def test_rows_a_filter_keeps_up_to_the_limit(good: Path) -> None:
    rows = ask(good, where="month = 2", limit=7)
    assert rows["month"].to_list() == [2] * 7


def test_changes_of_commits(good: Path) -> None:
    rows = ask(good, start=5, limit=1_000)
    assert rows["_change_type"].value_counts().sort("_change_type").rows() == [("delete", 60), ("insert", 60)]


def test_two_versions_compared(good: Path) -> None:
    answer = runner.run(request(good, base=1, version=3, limit=7), seconds=60, on_wait=lambda _: None)
    assert answer.counts == {"gains": 40, "losses": 0, "rows_read": 40}
    assert answer.rows["month"].to_list() == [2] * 7


@PROCESSES
def test_a_comparison_of_many_wide_rows_fits_into_the_memory_of_one_query(tmp_path: Path) -> None:
    rows = pl.select(
        pl.int_range(300_000).alias("c0"), *((pl.int_range(300_000) % n).alias(f"c{n}") for n in range(1, 24))
    )
    table = lv.create_table(str(tmp_path / "wide"), rows.to_arrow().schema)
    table.append(rows)
    query = request(tmp_path / "wide", version=1, base=0, limit=3, memory=runner.MEMORY * 3 // 4)
    answer = runner.run(query, seconds=60, on_wait=lambda _: None)
    assert answer.counts == {"gains": 300_000, "losses": 0, "rows_read": 300_000}
    assert answer.rows["c0"].to_list() == [0, 1, 2]


@PROCESSES
def test_who_waits_is_told_how_far_it_is(good: Path) -> None:
    progress_calls: list[runner.Progress] = []
    runner.run(request(good, where="month = 2"), seconds=60, on_wait=progress_calls.append)
    assert all(progress.has_begun for progress in progress_calls)
    assert [p.seconds for p in progress_calls] == sorted(p.seconds for p in progress_calls)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sql": "select nope from t"}, 'the query cannot be run: unable to find column "nope"'),
        ({"sql": "drop table t"}, "DROP is no SELECT"),
        ({"where": "delay > 'x'"}, "the rows cannot be filtered by delay > 'x'"),
    ],
)
def test_what_cannot_be_run_says_why(fields: dict[str, Any], message: str, good: Path) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        ask(good, **fields)
    assert message in refused.value.message
    if "where" in fields:
        assert refused.value.fix == "compare each column with a value of its own type: delay is integer"
    assert refused.value.fix


@PROCESSES
def test_an_error_of_the_table_arrives_as_it_is(tmp_path: Path) -> None:
    root = tables.file_missing(tmp_path / "flights")
    with pytest.raises(DataFileMissingError, match=r"load-1\.parquet") as missing:
        ask(root, where="month = 1")
    assert missing.value.fix


@PROCESSES
def test_a_query_that_takes_too_long_is_ended(good: Path) -> None:
    cross = ", ".join(f"t t{i}" for i in range(9))  # 60 to the power of 9 rows
    with pytest.raises(InvalidRequestError, match=r"stopped after 0\.5 seconds") as stopped:
        ask(good, sql=f"select count(*) from {cross} where t0.delay + t8.delay = 7", seconds=0.5)
    assert stopped.value.kind == "over-budget"


@PROCESSES
def test_a_query_that_takes_too_much_memory_ends_alone(tmp_path: Path) -> None:
    table = tables.LogWriter(tmp_path / "wide").create()
    table.commit("WRITE", table.add("load", tables.flights(1, 6_000), 1))
    text = "select a.month, array_agg(b.carrier) as c, array_agg(b.delay) as d from t a cross join t b group by a.month"
    with pytest.raises(InvalidRequestError, match=r"it needed more than the 700 MiB there are") as ended:
        ask(tmp_path / "wide", version=1, sql=text, memory=700 << 20)
    assert ended.value.kind == "over-budget"
    assert "backtrace" not in ended.value.message


@PROCESSES
def test_whoever_stops_waiting_ends_it(good: Path) -> None:
    class Stop(BaseException):
        pass

    def leave(_: runner.Progress) -> None:
        raise Stop

    with pytest.raises(Stop):
        runner.run(request(good, sql="select * from t"), seconds=60, on_wait=leave)
    assert ask(good, sql="select count(*) as n from t").item() == 60


@PROCESSES
def test_queries_wait_for_a_place(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = BoundedSemaphore(1)
    place.acquire()
    monkeypatch.setattr(runner, "_PLACES", place)
    progress_calls: list[runner.Progress] = []
    with pytest.raises(InvalidRequestError, match="other queries were running"):
        runner.run(request(good, sql="select 1"), seconds=0.1, on_wait=progress_calls.append)
    assert [progress.has_begun for progress in progress_calls] == [False]


def test_an_answer_too_large_to_show_is_refused(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_RESULT_BYTES", 100)
    with pytest.raises(LakeviewError, match="more than the 100 B that can be shown"):
        worker.answer(request(good, sql="select * from t"), lambda _: None)


@PROCESSES
def test_rows_beyond_the_limit_are_under_way_when_the_process_ends(tmp_path: Path) -> None:
    """Threads that still hand rows over must not meet an interpreter that ends: that aborted the process."""
    rows = pl.select(a=pl.int_range(20_000), b=pl.int_range(20_000).cast(pl.String))
    table = lv.create_table(str(tmp_path / "wide"), rows.to_arrow().schema)
    for _ in range(30):
        table.append(rows)
    for _ in range(3):
        assert ask(tmp_path / "wide", version=30, where="a >= 0", limit=100).height == 100


@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        ({"where": "delay >= 0"}, ["month", "carrier", "delay", "cancelled"]),
        ({"sql": "select delay + 1 as later, 'x' as x from t where delay >= 0", "is_rowwise": True}, ["later", "x"]),
    ],
)
def test_rows_of_the_answer_that_are_there_when_the_time_is_over_are_a_part_of_it(
    fields: dict[str, Any], columns: list[str], good: Path
) -> None:
    """The query is held up at its first batch: the rows of that batch are there all the same."""
    part, whole = part_and_whole(RowsSoFar, request(good, **fields, limit=7))
    assert part.counts == {"stopped": 1}
    assert part.rows.columns == columns
    assert 0 < part.rows.height <= 7
    assert part.rows.join(whole.rows, on=columns, how="anti", nulls_equal=True).is_empty()


def test_a_comparison_is_given_in_part_with_what_differs_for_certain(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long"})
    history.commit(ids_file(history, "a", 1, 2, 3)).commit(remove("a"), ids_file(history, "b", *range(2, 99)))
    for base, undecided in ((0, 0), (1, 3)):
        part, whole = part_and_whole(DifferenceSoFar, request(tmp_path / "t", base=base, version=base + 1))
        assert part.counts == {
            "gains": 3 - undecided,
            "losses": 0,
            "rows_read": 3,
            "rows_undecided": undecided,
            "stopped": 1,
        }
        assert part.rows.height == 3 - undecided, "of what was rewritten, the rows of one version are read first"
        assert part.rows.columns == whole.rows.columns
        assert (whole.counts["rows_read"], whole.counts["losses"]) == ((3, 0) if base == 0 else (100, 1))


def part_and_whole(kind: type[RowsSoFar | DifferenceSoFar], query_request: Request) -> tuple[Answer, Answer]:
    """The answer to a request that is held up at its first batch, and to one that goes on."""
    passed, go_on = Event(), Event()
    answers: list[Answer] = []

    class HeldUp(kind):  # type: ignore[misc, valid-type]
        def add(self, batch: pl.DataFrame) -> None:
            super().add(batch)
            passed.set()
            assert go_on.wait(30)

    partial = HeldUp(query_request.limit)
    assert partial.answer() is None
    query = Thread(target=lambda: answers.append(worker.answer(query_request, lambda _: None, partial)))
    query.start()
    assert passed.wait(30)
    part = partial.answer()
    go_on.set()
    query.join(30)
    assert part is not None
    return part, answers[0]


@pytest.mark.parametrize("expected", [[2, 3], []])
def test_a_query_that_is_cancelled_gives_the_rows_so_far(expected: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Answer] = []
    monkeypatch.setattr(worker, "_write", answers.append)
    monkeypatch.setattr("os._exit", lambda _: None)
    partial, cancelled = RowsSoFar(7), Event()
    partial.add(pl.DataFrame({"month": expected}, schema={"month": pl.Int64}))
    worker._await_end(StringIO(), cancelled)  # its input was closed
    worker._give_part(partial, Lock(), monotonic() + 600, cancelled)
    assert [answer.rows["month"].to_list() for answer in answers] == [expected]
    assert answers[0].counts == {"stopped": 1, "cancelled": 1}


def test_a_profile_that_stops_gives_the_figures_of_the_columns_that_were_read(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[Answer] = []

    class ProfileWithParts(ProfileSoFar):
        def add(self, columns: Sequence[pl.DataFrame], rows: int) -> None:
            super().add(columns, rows)
            if (part := self.answer()) is not None:
                parts.append(part)

    whole = worker.answer(request(good, profile=True), lambda _: None, ProfileWithParts())
    first = parts[0]
    assert first.counts == {"rows": whole.counts["rows"], "stopped": 1}
    assert first.rows["column"].to_list() == whole.rows["column"].to_list()
    assert first.rows["nulls"].to_list() == [whole.rows["nulls"][0], *[None] * (whole.rows.height - 1)]
    assert first.rows["distinct"].null_count() == whole.rows.height
    assert first.rows[0, "max_text"] == whole.rows[0, "max_text"]
    counts = [part.rows["distinct"].count() for part in parts]
    assert counts == [0, 1, 1, *range(2, whole.rows.height + 1)], "no column waits for the distribution of another"
    assert parts[-1].rows.equals(whole.rows)
    monkeypatch.setattr(runner, "run", lambda *_, **__: first)
    app = open_page("data", good, tab="Profile")
    assert not app.exception
    assert f"1 of {whole.rows.height} columns read, not all with distributions" in text(app)


def test_the_rows_of_a_cancelled_query_are_shown_as_a_part(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(request: Request, *, on_part: Callable[[Answer], object], **_: object) -> Answer:
        on_part(Answer(pl.DataFrame({"month": [2]}), {"stopped": 1, "cancelled": 1}))
        raise StopException

    monkeypatch.setattr(runner, "run", run)
    app = open_page("data", good, where="month = 2").run()
    assert "**Cancelled** :gray[these are the 1 row found so far; ask again for all of them]" in text(app)
    assert "a part, 1 where month = 2" in text(app)


@pytest.mark.parametrize(
    ("fields", "possible"),
    [
        ({}, True),
        ({"sql": "select a from t", "is_rowwise": True}, True),
        ({"sql": "select count(*) from t"}, False),
        ({"base": 1}, True),
        ({"seed": 1}, False),
        ({"profile": True}, True),
    ],
)
def test_only_rows_and_columns_can_be_given_in_part(good: Path, fields: dict[str, Any], *, possible: bool) -> None:
    assert request(good, seconds=1.0, **fields).can_stop is possible
    assert not request(good, **fields).can_stop


@pytest.mark.parametrize(
    ("fields", "message", "fix"),
    [
        (
            {"base": 1},
            "the comparison was stopped after 3 seconds, with 7 rows read",
            "versions closer together",
        ),
        ({"start": 2}, "the query was stopped after 3 seconds, with 7 rows read", "choose fewer commits"),
        (
            {"sql": "select 1 from t", "is_rowwise": True},
            "the query was stopped after 3 seconds, with 7 rows read and none found",
            "filter by columns",
        ),
        ({"sql": "select sum(a) from t"}, "the query was stopped after 3 seconds, with 7 rows read", "filter by"),
    ],
)
def test_what_is_stopped_without_rows_says_what_to_do(
    fields: dict[str, Any], message: str, fix: str, good: Path
) -> None:
    stopped = runner._time_limit_error(request(good, **fields), 3, 7)
    assert message in stopped.message
    assert fix in (stopped.fix or "")


@pytest.mark.parametrize(
    ("fields", "fix"),
    [
        ({"base": 1}, "versions closer together"),
        ({"start": 2}, "fewer commits"),
        ({"where": "delay > 1"}, "filter by columns"),
        ({"sql": "select delay from t"}, "columns"),
    ],
    ids=["of two versions", "of changes", "of a filter", "of SQL"],
)
def test_what_takes_too_much_memory_or_shows_too_much_says_what_to_do_on_its_page(
    fields: dict[str, Any], fix: str, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = create_autospec(QueryProcess, instance=True, error=None, noise="")
    ended.exit_code.return_value = 137
    with pytest.raises(InvalidRequestError, match="it needed more than") as too_large:
        runner._answer(ended, request(good, **fields))
    assert fix in (too_large.value.fix or "")
    monkeypatch.setattr(worker, "MAX_RESULT_BYTES", 10)
    with pytest.raises(InvalidRequestError, match="that can be shown") as too_long:
        worker.answer(request(good, **fields), lambda _: None)
    assert fix in (too_long.value.fix or "")
    assert too_long.value.place == ("sql" if "sql" in fields else "rows")


@PROCESSES
def test_the_time_to_start_a_process_is_none_of_the_query_s(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(1)")  # a machine that is slow to start it
    monkeypatch.syspath_prepend(str(tmp_path))
    progress: list[runner.Progress] = []
    assert runner.run(request(good, where="month = 2"), seconds=30, on_wait=progress.append).rows.height
    assert [p.seconds for p in progress[:3]] == [0.0] * 3


def test_changes_of_one_kind(good: Path) -> None:
    rows = ask(good, start=5, change_types=("delete",), limit=1_000)
    assert rows["_change_type"].to_list() == ["delete"] * 60


@pytest.fixture
def idle_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[IdleProcesses]:
    """Processes started ahead, as by a server; none is left over."""
    processes = IdleProcesses()
    processes.is_enabled = True
    monkeypatch.setattr(runner, "IDLE", processes)
    yield processes
    processes.clear()


@PROCESSES
def test_a_query_runs_in_the_process_that_waits_and_another_is_started_after_it(
    good: Path, idle_processes: IdleProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner.start_ahead(str(good))
    first = idle_processes.take(readable_folders(str(good)))
    assert first is not None
    monkeypatch.setattr(
        idle_processes, "take", lambda folders: first if folders == readable_folders(str(good)) else None
    )
    assert ask(good, sql="select count(*) as n from t").item() == 60
    assert not first.is_alive
    assert len(idle_processes) == 1


def test_a_process_that_waits_ends_when_its_input_closes(good: Path) -> None:
    process = QueryProcess(readable_folders(str(good)))
    process.send(b"")
    assert process.done.wait(30)
    assert (process.exit_code(), process.error) == (0, None)
    process.end()


class Fake(QueryProcess):
    """A process that is none."""

    started: ClassVar[list[Fake]] = []

    def __init__(self, folders: tuple[str, ...]) -> None:
        self.folders = folders
        self.has_ended = Event()
        self.started.append(self)

    @property
    def is_alive(self) -> bool:
        return not self.has_ended.is_set()

    def end(self) -> None:
        self.has_ended.set()


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> list[Fake]:
    """The processes that were started, which are none."""
    monkeypatch.setattr(Fake, "started", [])
    monkeypatch.setattr(idle, "QueryProcess", Fake)
    return Fake.started


def test_one_process_waits_for_a_table_and_two_in_all(idle_processes: IdleProcesses, fakes: list[Fake]) -> None:
    for folder in ("a", "a", "b", "c"):
        idle_processes.start((folder,))
    assert [(process.folders, process.is_alive) for process in fakes] == [
        (("a",), False), (("b",), True), (("c",), True),
    ]  # fmt: skip
    assert idle_processes.take(("a",)) is None
    assert idle_processes.take(("b",)) is fakes[1]
    assert idle_processes.take(("b",)) is None


def test_a_process_that_ended_while_it_waited_is_not_given_out(
    idle_processes: IdleProcesses, fakes: list[Fake]
) -> None:
    idle_processes.start(("a",))
    fakes[0].end()
    assert idle_processes.take(("a",)) is None


def test_a_process_waits_no_longer_than_its_time(
    idle_processes: IdleProcesses, fakes: list[Fake], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "SECONDS", 0.0)
    idle_processes.start(("a",))
    assert fakes[0].has_ended.wait(30)
    assert idle_processes.take(("a",)) is None


def test_a_machine_without_memory_starts_nothing_ahead(
    idle_processes: IdleProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: tuple[str, ...]) -> None:
        raise OSError("no memory")

    monkeypatch.setattr(idle, "QueryProcess", refuse)
    idle_processes.start(("a",))
    assert len(idle_processes) == 0


def test_nothing_is_started_ahead_where_no_server_asked_for_it(fakes: list[Fake]) -> None:
    IdleProcesses().start(("a",))
    assert fakes == []


@PROCESSES
def test_rows_on_arrival_are_read_in_another_process_and_once(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("rows are read in the process of the server")

    for method in ("scan", "changes"):
        monkeypatch.setattr(DeltaTable, method, refuse)
    assert open_page("data", good).dataframe[0].value.shape == (60, 4)
    assert len(open_page("timeline", good, commit="2", preview="True").dataframe[1].value) == 20
    monkeypatch.setattr(runner, "QueryProcess", refuse)
    assert open_page("data", good).dataframe[0].value.shape == (60, 4)


def test_a_part_is_asked_for_again_once_it_may_take_longer(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds_given: list[float] = []

    def stop(request: Request, *, seconds: float, **_: object) -> Answer:
        seconds_given.append(seconds)
        return Answer(pl.DataFrame({"month": [2]}), {"stopped": 1})

    monkeypatch.setattr(runner, "run", stop)
    app = open_page("data", good, where="month = 2")
    assert "Stopped after 30 s" in text(app)
    assert "a part, 1 where month = 2" in text(app)
    app.selectbox(key="seconds").set_value("10 s").run()
    assert "Stopped after 30 s" in text(app)
    app.selectbox(key="seconds").set_value("2 min").run()
    assert "Stopped after 120 s" in text(app)
    assert seconds_given == [30, 120]


def test_what_was_cancelled_is_not_begun_again_and_others_keep_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, Any] = {}
    monkeypatch.setattr("streamlit.session_state", state)
    monkeypatch.setattr("streamlit.button", lambda *_, **__: False)
    monkeypatch.setattr("lakeview.app.selection.remembered_selection", lambda: Selection("t"))
    cheap, allowed = budget.Cost(1, 10, 1), budget.Budget(100, 30)

    def is_asked(key: str, request: str) -> bool:
        return budget.button("Read", request, cheap, allowed, key=key, on_arrival=True)

    assert is_asked("rows", "a")
    budget.forget(InvalidRequestError("no"))  # the run of the page ends
    assert not is_asked("rows", "a")
    assert is_asked("rows", "b")

    reads: list[Request] = []

    def run(request: Request, *_: object) -> Answer:
        reads.append(request)
        return Answer(pl.DataFrame(), {})

    monkeypatch.setattr(budget, "_run", run)
    state.clear()
    first, second = (Request("t", version, 9, 1) for version in (1, 2))
    for request in (first, second, first):
        budget.answer(request, allowed)
    assert reads == [first, second]


@pytest.mark.parametrize(
    ("view", "ending", "reason"),
    [
        ({"where": "month = 2"}, StopException(), "the query was stopped before it had an answer"),
        ({"tab": "Profile"}, StopException(), "the profile was stopped before its first column was done"),
        (
            {"tab": "Profile"},
            runner._time_limit_error(Request("t", 1, 9, 1, profile=True), 30, 7),
            (
                "the profile was stopped after 30 seconds, before its first column was done; allow it more seconds, or "
                "filter by columns that skip files"
            ),
        ),
    ],
    ids=["rows cancelled", "profile cancelled", "profile out of time"],
)
def test_a_query_that_ends_without_an_answer_says_why_and_waits_to_be_asked_again(
    view: dict[str, str], ending: BaseException, reason: str, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, **__: object) -> Answer:
        raise ending

    monkeypatch.setattr(runner, "run", run)
    app = open_page("data", good, **view)
    assert "Ended without an answer" not in text(app)
    assert f"**Ended without an answer** :gray[{reason}; press to ask again]" in text(app.run())


@pytest.mark.parametrize("is_part_known", [True, False])
def test_the_next_run_of_a_page_waits_for_the_query_that_the_one_before_cancels(
    monkeypatch: pytest.MonkeyPatch, is_part_known: bool
) -> None:
    """Streamlit begins the run that a press of Cancel asks for while it still ends the run before."""
    state: dict[str, Any] = {}
    monkeypatch.setattr("streamlit.session_state", state)
    monkeypatch.setattr("streamlit.button", lambda *_, **__: False)
    monkeypatch.setattr("lakeview.app.selection.remembered_selection", lambda: Selection("t"))
    is_running, is_cancelled = Event(), Event()
    starts: list[Request] = []

    def run(request: Request, *, on_part: Callable[[Answer], object], **_: object) -> Answer:
        starts.append(request)
        is_running.set()
        is_cancelled.wait(60)
        if is_part_known:
            on_part(Answer(pl.DataFrame({"month": [2]}), {"stopped": 1, "cancelled": 1}))
        raise StopException

    class AskedToRunAgainError(Exception):
        pass

    class Noticed(dict[Request, Event]):
        def get(self, *key: Any) -> Any:
            is_cancelled.set()  # once the next run looks for a query that is running
            return super().get(*key)

    def rerun() -> None:
        raise AskedToRunAgainError

    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr("streamlit.rerun", rerun)
    request, allowed = Request("t", 1, 9, 1), budget.Budget(100, 30)

    def page() -> Answer | None:
        is_asked = budget.button("Read", "a", budget.Cost(1, 10, 1), allowed, key="rows", on_arrival=True)
        return budget.answer(request, allowed) if is_asked else None

    def next_page() -> Answer | str | None:
        try:
            return page()
        except AskedToRunAgainError:
            return "run again"

    with ThreadPoolExecutor(2) as runs:
        first = runs.submit(page)
        assert is_running.wait(60)
        state["_queries"].running = Noticed(state["_queries"].running)
        second = runs.submit(next_page)
        with pytest.raises(StopException):
            first.result(60)
        answer = second.result(60)
    assert starts == [request], "the query is not begun again"
    if is_part_known:
        assert isinstance(answer, Answer)
        assert answer.counts["cancelled"]
    else:
        assert answer == "run again"
        assert page() is None
