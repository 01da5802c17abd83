"""The audit log where it is moved, points at somebody's table, is flooded, or is asked for what went wrong."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import lakeview as lv
from lakeview.delta.table import DeltaTable
from lakeview.sharing.server.audit import AuditLog, Entry
from lakeview.sharing.server.sources import Sources
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.server.conftest import Api, Clock
from tests.server.shared_lake import TABLE, months
from tests.server.test_audit_and_views import rows


@pytest.fixture
def audited(api: Api) -> Path:
    path = api.folder / "audit"
    api.hub.audit = AuditLog(str(path), api.clock)
    return path


def entry(number: int) -> Entry:
    return Entry(Clock()(), str(number), recipient="ann")


def numbers(path: Path) -> list[str]:
    return sorted(rows(path)["request_id"])


def test_an_audit_log_that_is_moved_away_goes_on_in_a_new_table(tmp_path: Path) -> None:
    log = AuditLog(str(tmp_path / "audit"), Clock())
    for number in range(2):
        log.add(entry(number))
        log.flush()
    (tmp_path / "audit").rename(tmp_path / "old")
    log.add(entry(2))
    assert log.flush() == 0
    log.add(entry(3))
    assert log.flush() == 2
    assert (numbers(tmp_path / "old"), numbers(tmp_path / "audit")) == (["0", "1"], ["2", "3"])


def test_an_audit_log_that_is_made_anew_by_another_process_is_not_broken(tmp_path: Path) -> None:
    log, other = (AuditLog(str(tmp_path / "audit"), Clock()) for _ in range(2))
    for number in range(2):
        log.add(entry(number))
        log.flush()
    (tmp_path / "audit").rename(tmp_path / "old")
    other.add(entry(2))
    other.flush()
    log.add(entry(3))
    log.flush()
    log.flush()
    assert numbers(tmp_path / "audit") == ["2", "3"]


def test_an_audit_log_takes_no_place_of_another_format(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fields = [{"id": 1, "name": "id", "type": "long", "required": False}]
    IcebergHistory(tmp_path / "ice", fields).append("a.parquet", [{"id": 1}])
    log = AuditLog(str(tmp_path / "ice"), Clock())
    log.add(entry(0))
    assert log.flush() == 0
    assert "is a table of format iceberg, and the audit log is written as Delta" in caplog.text
    assert not (tmp_path / "ice" / "_delta_log").exists()


@pytest.mark.parametrize("columns", [{"id": "long"}, {"version": "long"}], ids=lambda c: next(iter(c)))
def test_an_audit_log_does_not_write_into_somebodys_table(tmp_path: Path, columns: dict[str, str]) -> None:
    DeltaHistory(tmp_path / "t").create(columns)
    log = AuditLog(str(tmp_path / "t"), Clock())
    log.add(entry(0))
    assert log.flush() == 0
    assert lv.open_table(tmp_path / "t").latest_version == 0


@pytest.mark.parametrize(
    "fault", [OSError(28, "No space left on device"), pl.exceptions.ComputeError("x"), pa.ArrowInvalid("x")], ids=repr
)
def test_no_fault_of_a_write_loses_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    log = AuditLog(str(tmp_path / "audit"), Clock())
    log.add(entry(0))
    with monkeypatch.context() as broken:

        def fails(*_: object, **__: object) -> None:
            raise fault

        broken.setattr(DeltaTable, "append", fails)
        assert [log.flush(), log.flush()] == [0, 0]
    log.add(entry(1))
    assert log.flush() == 2
    assert numbers(tmp_path / "audit") == ["0", "1"]


def test_what_waits_too_long_is_bounded_and_the_oldest_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lakeview.sharing.server.audit._MAX_WAITING", 3)
    log = AuditLog(str(tmp_path / "audit"), Clock())
    for number in range(5):
        log.add(entry(number))
    assert log.flush() == 3
    assert numbers(tmp_path / "audit") == ["2", "3", "4"]
    assert "2 entries of the audit log are lost" in caplog.text


def test_whoever_shows_no_token_cannot_fill_the_log(api: Api, audited: Path) -> None:
    for _ in range(100):
        api.get("shares", "wrong")
        api.client.get("/files/x/y?sig=z")
    assert api.hub.audit is not None
    assert api.hub.audit.flush() == 3
    counts = {(r["action"], r["status"]): r["requests"] for r in rows(audited).iter_rows(named=True)}
    assert counts == {("list", 401): 50, ("list", 429): 50, ("file", 403): 100}


def test_a_fault_of_ours_is_a_row_as_well(api: Api, audited: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Sources, "current", fails)
    with pytest.raises(ZeroDivisionError):
        api.post(TABLE.format("months") + "/query", {})
    assert api.hub.audit is not None
    api.hub.audit.flush()
    (row,) = rows(audited).to_dicts()
    assert (row["recipient"], row["action"], row["table"], row["status"]) == ("ann", "query", "months", 500)


def test_odd_bytes_of_a_request_are_written_down(api: Api, audited: Path) -> None:
    bodies = (b'{"predicateHints":["\\ud800"]}', b"\xff", b'{"jsonPredicateHints":"\\u0000"}')
    for body in bodies:
        api.post(TABLE.format("months") + "/query", body, {"User-Agent": "a\tb"})
    api.get("shares/%ff%fe")
    assert api.hub.audit is not None
    assert api.hub.audit.flush() == 4
    assert rows(audited).height == 4


def test_a_table_of_somebody_that_is_shared_keeps_its_rows(tmp_path: Path) -> None:
    base = months(tmp_path / "t")
    log = AuditLog(base.address, Clock())
    log.add(entry(0))
    log.flush()
    assert lv.open_table(base.address).scan().collect().height == 12


@pytest.mark.parametrize("mark", ["\x08", "\x1b", "\x7f"], ids=ascii)
def test_what_would_steer_a_terminal_is_escaped_in_a_user_agent(mark: str, api: Api, audited: Path) -> None:
    api.get("shares", headers={"User-Agent": f"a{mark}[31mred"})
    assert api.hub.audit is not None
    api.hub.audit.flush()
    assert rows(audited)["agent"][0] == f"a\\x{ord(mark):02x}[31mred"


@pytest.mark.parametrize(
    "mark", ["\x1b", "\x7f", "\x85", "\x9b", "\u2028", "\u2029", "\u202e", "\u2066", "\U000e0001"], ids=ascii
)
def test_no_text_of_the_log_steers_a_terminal(mark: str, api: Api, audited: Path) -> None:
    api.files("months", predicateHints=[f"city = '{mark}'"], jsonPredicateHints=f'"{mark}"')
    text = f"x{mark}"
    entry = Entry(Clock()(), text, text, text, text, text, "query", text, text, text)
    entry.file = text
    assert api.hub.audit is not None
    api.hub.audit.add(entry)
    api.hub.audit.flush()
    texts = [value for row in rows(audited).rows() for value in row if isinstance(value, str)]
    assert all(text.isprintable() for text in texts)
    assert any("predicateHints" in text for text in texts)
