"""lv.inspect: every answer as a frame of the declared columns, the same one that pages, command line and lake show."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import lakeview as lv
from lakeview import views
from lakeview.cli import main
from lakeview.iceberg.table import IcebergTable
from lakeview.inspection.inspection import Inspection
from lakeview.inspection.schemas import SCHEMA_CHANGES
from lakeview.inspection.statistics import FIRST_COLUMNS
from lakeview.model.errors import InvalidRequestError, LakeviewError, VersionNotFoundError
from lakeview.model.frames import PLAN
from lakeview.storage import Storage
from lakeview.views.health.findings import FINDINGS, findings_frame
from tests.builders.actions import add
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.pages import tables

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PACKAGE = str(Path(lv.__file__).parent)


@pytest.fixture(scope="module")
def delta(tmp_path_factory: pytest.TempPathFactory) -> lv.Table:
    return lv.open_table(tables.good(tmp_path_factory.mktemp("delta") / "t"))


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def look(request: pytest.FixtureRequest, delta: lv.Table, tmp_path_factory: pytest.TempPathFactory) -> Inspection:
    if request.param == "delta":
        return lv.inspect(delta, clock=lambda: NOW)
    return lv.inspect(lv.open_table(grown(tmp_path_factory.mktemp("iceberg")).address), clock=lambda: NOW)


def grown(root: Path) -> IcebergHistory:
    fields = [
        {"id": 1, "name": "month", "required": False, "type": "int"},
        {"id": 2, "name": "carrier", "required": False, "type": "string"},
    ]
    history = IcebergHistory(root / "t", fields, [(1, "identity", "month")], location=str(root / "t"))
    for month in (1, 2):
        history.append(f"load-{month}", [{"month": month, "carrier": carrier} for carrier in ("AA", "B6", "UA")])
    return history


def test_a_question_passes_few_functions_on_its_way_to_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in the stack of the first read: functions of the library, that read included, and no page's."""
    history = DeltaHistory(tmp_path).create({"a": "long"}).commit(add("f", stats={"numRecords": 1})).checkpoint(1)
    depths: list[int] = []

    def note_depth(_: Storage, kind: str, times: int = 1) -> None:
        frames = [frame for frame, _ in traceback.walk_stack(sys._getframe(1))]
        depths.append(sum(frame.f_code.co_filename.startswith(PACKAGE) for frame in frames))

    def depth(ask: Callable[[Inspection], object]) -> int:
        look = lv.inspect(lv.open_table(history.address))
        _ = look.snapshot
        depths.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Storage, "count", note_depth)
            ask(look)
        return depths[0]

    assert depth(lambda look: look.snapshot.files) <= 12, "the files of a version"
    assert depth(lambda look: look.file_verdicts("a = 1")) <= 16, "the plan of a filter"


def test_every_answer_has_the_declared_columns(look: Inspection) -> None:
    versions = look.frames.history["version"]
    where = "carrier = 'AA'"
    answers = {
        "timeline": (look.timeline(), views.timeline.commits.TIMELINE),
        "schema_changes": (look.schema_changes(), SCHEMA_CHANGES),
        "partitions": (look.partitions(), views.partitions.sizes.PARTITION_SIZES),
        "pruning": (look.pruning(where), PLAN),
        "file_verdicts": (look.file_verdicts(where), views.pruning.plan.FILE_VERDICTS),
        "compare": (look.compare(versions[-1], versions[0]), views.compare.summary.COMPARISON),
        "quality": (look.quality(), views.quality.sudden_changes.SUDDEN),
        "retention": (look.retention(days=7), views.timeline.readability.RIBBON),
        "readability": (look.readability(), views.timeline.readability.RIBBON),
        "engines": (look.engines(), views.engines.compatibility.COMPATIBILITY),
        "health": (look.health(), FINDINGS),
    }
    assert {name: frame.schema for name, (frame, _) in answers.items()} == {n: dict(s) for n, (_, s) in answers.items()}
    assert look.files().equals(look.snapshot.files)
    assert [name for name, (frame, _) in answers.items() if frame.is_empty() and name != "schema_changes"] == []


def test_health_is_worst_first_and_names_what_to_do(look: Inspection) -> None:
    health = look.health()
    order = [severity.value for severity in views.health.findings.ORDER]
    assert health["severity"].to_list() == sorted(health["severity"], key=order.index)
    grave = health.filter(pl.col("severity").is_in(["broken", "attention"]))
    assert grave["evidence"].null_count() == 0
    assert set(grave["id"]) <= {finding.id for finding in look.findings()}


@pytest.mark.parametrize("build", [tables.unsupported, tables.corrupt], ids=["unsupported", "corrupt"])
def test_health_says_of_a_version_that_cannot_be_opened_that_and_why(
    tmp_path: Path, build: Callable[[Path], Path]
) -> None:
    address = str(build(tmp_path / "t"))
    look = lv.inspect(lv.open_table(address))
    with pytest.raises(LakeviewError) as error:
        _ = look.snapshot.files
    row = look.health().row(0, named=True)
    assert (row["severity"], row["evidence"], row["remedy"]) == ("broken", error.value.message, error.value.fix)
    assert CliRunner().invoke(main, ["health", address]).stdout.startswith("Not readable: one thing is broken\n")


@pytest.mark.parametrize(
    ("call", "argument"),
    [(lambda look: look.compare([], 1), "before"), (lambda look: look.compare(1, "2"), "after"),
     (lambda look: look.pruning([]), "where")],
    ids=["list", "text", "filter"],
)  # fmt: skip
def test_arguments_of_another_kind_are_refused_by_name(
    look: Inspection, call: Callable[[Inspection], object], argument: str
) -> None:
    with pytest.raises(InvalidRequestError, match=f"^{argument} is "):
        call(look)


def test_a_filter_may_be_an_expression_of_polars(look: Inspection) -> None:
    assert look.pruning(pl.col("carrier") == "AA").equals(look.pruning("carrier = 'AA'"))


def test_the_command_line_shows_the_same_findings_in_the_same_order(delta: lv.Table) -> None:
    done = CliRunner().invoke(main, ["health", "--json", delta.address])
    assert done.exit_code == 0
    assert [finding["id"] for finding in json.loads(done.stdout)] == lv.inspect(delta).health()["id"].to_list()


def test_an_inspection_follows_a_refresh_and_a_version_does_not(tmp_path: Path) -> None:
    log = tables.LogWriter(tmp_path / "t").create()
    log.commit("WRITE", log.add("load-0", tables.flights(1, rows=50), 1))
    table = lv.open_table(tmp_path / "t")
    newest, pinned = lv.inspect(table), lv.inspect(table, 1)
    assert (newest.timeline().height, pinned.files().height) == (2, 1)
    log.commit("WRITE", log.add("load-1", tables.flights(1, rows=50), 1))
    assert table.refresh()
    assert (newest.timeline().height, newest.files().height) == (3, 2)
    assert (pinned.version, pinned.files().height) == (1, 1)


def test_a_timestamp_and_a_missing_version(delta: lv.Table) -> None:
    first = delta.history()["timestamp"].min()
    assert isinstance(first, datetime)
    assert lv.inspect(delta, at=first + timedelta(milliseconds=1)).version == delta.history()["version"].min()
    with pytest.raises(VersionNotFoundError):
        lv.inspect(delta, 10_000)


def test_frames_are_read_once(delta: lv.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    own = type(delta).lifetimes

    def counting(self: lv.Table, columns: object = None) -> pl.DataFrame:
        calls.append(str(columns))
        return own(self, columns)  # type: ignore[arg-type]

    monkeypatch.setattr(type(delta), "lifetimes", counting)
    again = lv.inspect(delta, clock=lambda: NOW)
    first = again.health()
    calls_before = len(calls)
    assert again.health().equals(first)
    assert again.timeline().height == delta.history().height
    assert len(calls) == calls_before


def test_files_are_read_with_the_statistics_of_their_loads_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, calls, own = lv.open_table(grown(tmp_path).address), list[object](), IcebergTable.lifetimes

    def counting(self: IcebergTable, columns: Sequence[str] | None = None) -> pl.DataFrame:
        calls.append(columns)
        return own(self, columns)

    monkeypatch.setattr(IcebergTable, "lifetimes", counting)
    assert lv.inspect(table, clock=lambda: NOW).timeline().height == 2
    assert calls == [("carrier",), None]


def test_the_columns_of_a_wide_table_are_asked_for_statistics_only_where_the_first_say_nothing(tmp_path: Path) -> None:
    first, last = ({"numRecords": 5, "nullCount": {name: 0}} for name in ("c0", "c39"))
    history = DeltaHistory(tmp_path / "t").create({f"c{i}": "long" for i in range(40)})
    history.commit(add("a", stats=first))
    history.commit(add("b", stats=last))
    history.commit(add("c", records=5))
    table = lv.open_table(history.address)
    reads = {v: lv.inspect(table, v) for v in (1, 2, 3)}
    assert [look.files_without_statistics()["_path"].to_list() for look in reads.values()] == [[], [], ["c"]]
    widths = {v: look.files_without_statistics().width for v, look in reads.items()}
    assert widths == {1: FIRST_COLUMNS + 2, 2: 42, 3: 42}, "with `_path` and `_deletion_vector`"


def test_a_table_whose_columns_are_all_in_folder_names_has_states_of_none(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long"}, partition_by=("id",))
    history.commit(add("id=1/a", partitionValues={"id": "1"}))
    assert lv.inspect(lv.open_table(history.address)).column_states().is_empty()


def test_a_frame_of_no_findings_has_its_columns() -> None:
    assert findings_frame([]).schema == FINDINGS


@pytest.mark.parametrize("keys", [["day"], ["day", "shop"]], ids=["one key", "two keys are no sequence"])
def test_a_load_brings_a_late_partition_where_partitions_are_a_sequence(tmp_path: Path, keys: list[str]) -> None:
    columns = {"day": "integer", "shop": "string", "x": "integer"}
    history = DeltaHistory(tmp_path / "t").create(columns, partition_by=tuple(keys))
    for day in (1, 3, 4, 5, 2):
        values = {key: {"day": str(day), "shop": "a"}[key] for key in keys}
        history.commit(add("/".join([*values.values(), "f"]), records=10, partition=values))
    labels = lv.inspect(lv.open_table(history.address)).timeline()["label"]
    assert labels[-1] == ("late day=2" if keys == ["day"] else None)


def test_an_inspection_shows_its_verdict_and_findings_in_a_notebook(look: Inspection, tmp_path: Path) -> None:
    html = look._repr_html_()
    findings = look.health_findings()
    grave = [f for f in findings if f.severity in views.health.findings.OPEN]
    assert f"<p>{views.health.findings.verdict(findings)}</p>" in html
    assert [html.count(f"<b>{f.claim}</b>") for f in grave] == [1] * len(grave)
    assert repr(look) == f"Inspection({look.frames.table.address!r}, version={look.version})"
    unsupported = lv.inspect(lv.open_table(tables.unsupported(tmp_path / "t")))._repr_html_()
    assert "<p>Not readable: one thing is broken</p>" in unsupported


def test_loads_have_no_baseline_where_the_table_cannot_be_read(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create()
    for version in range(1, 14):
        history.commit(add(f"f{version}", records=100))
    assert lv.inspect(lv.open_table(history.address)).has_baseline()
    assert not lv.inspect(lv.open_table(history.without(12).address)).has_baseline()


def test_the_health_of_a_table_whose_log_has_a_file_with_two_vectors_at_once(tmp_path: Path) -> None:
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    history = DeltaHistory(tmp_path / "t").create()
    wrong = {"numRecords": 9, "minValues": {"id": 2}, "maxValues": {"id": 1}}
    history.commit(add("f", stats=wrong), add("f", stats=wrong, deletionVector=vector))
    titles = lv.open_table(history.address).health()["title"].to_list()
    assert "Statistics of id contradict themselves in 2 of 2 files" in titles
