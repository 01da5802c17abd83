"""Each command on a table told by a builder: its text, its JSON, its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lakeview.cli import main
from lakeview.cli.app import app_script
from lakeview.cli.commands import report
from lakeview.model.errors import StoreUnavailableError
from lakeview.model.findings import Finding, Severity
from tests.builders.actions import add, info, metadata, protocol, remove
from tests.builders.history import DeltaHistory
from tests.doctor.diagnosis import rows, sound

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def history(tmp_path: Path) -> DeltaHistory:
    """A sound table of three versions."""
    return sound(DeltaHistory(tmp_path / "table"))


def run(*words: str, columns: int | None = None) -> Result:
    return CliRunner(env={"COLUMNS": None if columns is None else str(columns)}).invoke(main, list(words))


def json_of(*words: str) -> Any:
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_check_of_a_sound_table(history: DeltaHistory) -> None:
    done = run("check", history.address)
    assert done.exit_code == 0
    assert "pass       No commit is missing or broken: 3 commits, v0 to v2\n" in done.stdout
    assert done.stdout.endswith("\n8 pass\n")


def test_check_of_a_broken_table(history: DeltaHistory) -> None:
    history.remove("a.parquet")
    done = run("check", history.address)
    assert done.exit_code == 1
    assert done.stdout.startswith(
        "broken     1 live file is missing from the store\n"
        "           evidence  a.parquet; of 2 live files\n"
        "           place     a.parquet\n"
        "           rule      Delta protocol, Data Files\n"
        "           remedy    restore them from a backup, or restore the table to a version that does without\n"
    )


def test_a_command_is_whole_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    command = "CALL system.rewrite_data_files(table => 'flights')"
    finding = Finding("a", Severity.ATTENTION, "deleted rows", remedy="rewrite these files", command=command)
    assert f"           command   {command}" in list(report([finding]))


def test_check_fails_on_what_it_is_asked_to_fail_on(history: DeltaHistory) -> None:
    history.checkpoint().hint(b"{")
    assert run("check", history.address).exit_code == 0
    assert run("check", history.address, "--fail-on", "attention").exit_code == 1
    assert run("check", history.address, "--fail-on", "nothing").exit_code == 2


def test_check_as_json(history: DeltaHistory) -> None:
    history.remove("a.parquet")
    done = run("check", history.address, "--json")
    assert done.exit_code == 1
    first = json.loads(done.stdout)[0]
    assert first["severity"] == "broken"
    assert first["evidence"] == "a.parquet; of 2 live files"


def test_show(history: DeltaHistory) -> None:
    done = run("show", history.address)
    assert done.stdout.startswith("v2 has 6 rows in 2 columns and 2 files, ")
    assert "rows       6\n" in done.stdout
    assert "version    2\n" in done.stdout
    assert "protocol   reader 1 · writer 2\n" in done.stdout
    assert json_of("show", history.address, "--version", "1")["rows"] == 3
    assert json_of("show", history.address, "--at", "2026-03-01T08:12:00Z")["version"] == 1
    assert json_of("show", history.address, "--at", "2026-03-01T08:12")["version"] == 1, "without a zone it is UTC"


def test_show_tells_properties(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create(properties={"delta.appendOnly": "true"})
    assert "  delta.appendOnly  true\n" in run("show", history.address).stdout


def test_history(history: DeltaHistory) -> None:
    lines = run("history", history.address, "--limit", "2").stdout.splitlines()
    assert lines[0].split() == [
        "version",
        "timestamp",
        "operation",
        "+files",
        "-files",
        "+rows",
        "-rows",
        "user",
        "engine",
    ]
    assert lines[1].split() == ["2", "2026-03-01", "08:20:00", "WRITE", "1", "0", "3", "0"]
    assert len(lines) == 3
    assert [c["version"] for c in json_of("history", history.address)] == [2, 1, 0]
    assert json_of("history", history.address)[0]["timestamp"] == "2026-03-01T08:20:00+00:00"


def test_a_narrow_history_names_engines_whole(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create()
    history.commit({"commitInfo": {"userName": "nightly-feed", "engineInfo": "Apache-Spark/4.3.0 Delta-Lake/4.1.0"}})
    lines = run("history", history.address, "--limit", "1", columns=80).stdout.splitlines()
    assert lines[1].endswith("  nightly-feed  Apache-Spark")


def test_a_narrow_history_cuts_no_text_and_names_an_engine_of_all_once(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t")
    old, new = add("a.parquet", records=28_000), add("b.parquet", records=28_000)
    engine = "Delta-Lake/4.1.0"
    history.commit(
        protocol(), metadata(), info(userName="nightly-feed", operation="CHANGE COLUMN", engineInfo=engine), old
    )
    history.commit(info(userName="maintenance", operation="OPTIMIZE", engineInfo=engine), new, remove("a.parquet"))
    lines = run("history", history.address, columns=72).stdout.splitlines()
    assert [line.split()[4:] for line in lines[1:3]] == [
        ["\N{PLUS-MINUS SIGN}1", "\N{PLUS-MINUS SIGN}28,000", "maintenance"],
        ["COLUMN", "+1", "+28,000", "nightly-feed"],
    ]
    assert lines[-1] == "engine of all: Delta-Lake"


def test_files(history: DeltaHistory) -> None:
    answer, *lines = run("files", history.address, "--version", "1").stdout.splitlines()
    assert answer.startswith("1 file, ")
    assert lines[0].split() == ["path", "size", "rows", "deleted", "rows", "modified"]
    assert lines[1].startswith("a.parquet")
    assert {f["path"] for f in json_of("files", history.address)} == {"a.parquet", "b.parquet"}


def test_a_terminal_tells_files_of_one_write_apart(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create()
    write, ends = "01673bec1af64003a59358e21b04d3ee", ("4be25b19", "6378c146")
    paths = [f"part-{write}-{end}-95de-427d-8750-4338cdcd7637.c000.zstd.parquet" for end in ends]
    address = history.commit(*map(add, paths)).address
    lines = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["files", address]).stdout.splitlines()[2:]
    assert [line.split()[0].split("\N{HORIZONTAL ELLIPSIS}")[0] for line in lines] == [f"part-{end}" for end in ends]
    assert all(path in run("files", address).stdout for path in paths)


def test_files_of_a_partitioned_table(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long", "day": "date"}, partition_by=("day",))
    history.commit(rows(history, "a.parquet", partition={"day": "2026-03-01"}))
    lines = run("files", history.address).stdout.splitlines()[1:]
    assert (lines[0].split()[-1], lines[1].split()[-1]) == ("partition", "day=2026-03-01")
    assert json_of("files", history.address)[0]["partition"] == {"day": "2026-03-01"}


def test_files_in_a_terminal_are_told_by_what_differs(tmp_path: Path) -> None:
    folder = "s3://bucket/warehouse/db/table/data/"
    history = DeltaHistory(tmp_path / "t").create(
        dict.fromkeys(("id", "month", "origin"), "string"), partition_by=("month", "origin")
    )
    for month, origin in (("2026-08", "JFK"), ("2026-09", "LGA")):
        path = f"month={month}/origin={origin}"
        history.commit(add(f"{folder}{path}/a.parquet", partition={"month": month, "origin": origin}))
    narrow = run("files", history.address, columns=80).stdout.splitlines()
    assert [(line.split()[0], line.split()[-1]) for line in narrow[2:]] == [
        ("a.parquet", "2026-08/JFK"), ("a.parquet", "2026-09/LGA"),
    ]  # fmt: skip
    assert folder in run("files", history.address).stdout
    partitions = run("partitions", history.address, columns=80).stdout.splitlines()
    assert [line.split()[0] for line in partitions[2:]] == ["2026-08/JFK", "2026-09/LGA"]


def test_no_files(tmp_path: Path) -> None:
    address = DeltaHistory(tmp_path / "t").create().address
    assert run("files", address).stdout == "no files\n"
    assert json_of("files", address) == []


def test_versions(history: DeltaHistory) -> None:
    history.without(0)
    lines = run("versions", history.address).stdout.splitlines()
    assert lines[0] == "None of 2 versions can be read"
    assert lines[2].startswith("      2  2026-03-01 08:20:00  no        the log starts at version 1")
    assert [v["readable"] for v in json_of("versions", history.address)] == [False, False]


def test_schema(history: DeltaHistory) -> None:
    answer, *lines = run("schema", history.address).stdout.splitlines()
    assert answer.startswith("2 columns, ")
    assert [line.split() for line in lines[:2]] == [
        ["column", "type", "nullable", "partition", "comment"],
        ["id", "long", "yes", "no"],
    ]
    assert json_of("schema", history.address)[1]["column"] == "city"


@pytest.mark.parametrize("command", ["show", "history", "files", "versions", "schema", "check"])
def test_what_is_no_table_is_told_without_a_traceback(command: str, tmp_path: Path) -> None:
    done = run(command, str(tmp_path))
    assert done.exit_code == 2
    assert done.stdout == ""
    error, fix = done.stderr.splitlines()
    assert error == f"error: {tmp_path} is no table: the folder is empty or not there"
    assert fix.startswith("fix: give the folder that holds _delta_log")


def test_other_errors_say_what_to_do(history: DeltaHistory) -> None:
    done = run("show", history.address, "--version", "9")
    assert done.exit_code == 2
    assert done.stderr.endswith("fix: ask for a version up to 2\n")
    assert "soon is no moment" in run("show", history.address, "--at", "soon").stderr


def test_a_table_that_cannot_be_read_is_checked_and_its_history_told(tmp_path: Path) -> None:
    both = ["fromTheFuture"]
    history = DeltaHistory(tmp_path / "t").commit(protocol(3, 7, readerFeatures=both, writerFeatures=both), metadata())
    assert run("show", history.address).exit_code == 2
    assert run("check", history.address).exit_code == 0
    assert len(json_of("history", history.address)) == 1


OPTIONS: dict[str, tuple[str, object]] = {
    "text": ("key=a=b", "a=b"),
    "a number stays text": ("key=0123", "0123"),
    "a boolean": ("key=True", True),
    "JSON": ('key={"endpoint_url": "http://localhost:9"}', {"endpoint_url": "http://localhost:9"}),
}


@pytest.mark.parametrize(("word", "value"), OPTIONS.values(), ids=OPTIONS)
def test_storage_options(word: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    options_seen: list[object] = []

    def refused(_: str, options: dict[str, object]) -> None:
        options_seen.append(options)
        raise StoreUnavailableError("not today")

    monkeypatch.setattr("lakeview.cli.commands.open_address", refused)
    assert run("show", "x", "--option", word).stderr == "error: not today\n"
    assert options_seen == [{"key": value}]


@pytest.mark.parametrize("word", ["key", "=value", "key={"])
def test_a_storage_option_that_is_none(word: str) -> None:
    done = run("show", "x", "--option", word)
    assert done.exit_code == 2
    assert "--option" in done.stderr


def test_nothing_of_a_table_reaches_the_terminal_as_a_command(tmp_path: Path) -> None:
    evil = "\x1b[2J\x9b31m\u202e\x07\x08\n"
    schema = {evil + "column": "long"}
    history = DeltaHistory(tmp_path / "t").commit(
        protocol(), metadata(schema, name=evil, description=evil, properties={"k" + evil: evil}),
        {"commitInfo": {"operation": evil, "engineInfo": evil, "userName": evil}},
    )  # fmt: skip
    history.commit(add(evil + "a.parquet", records=1))
    for command in ("show", "history", "files", "versions", "schema", "check"):
        for machine in ([], ["--json"]):
            done = run(command, history.address, *machine)
            for line in (done.stdout + done.stderr).splitlines():
                assert line.isprintable(), (command, line)
    assert "\\x1b[2J\\x9b31m\\u202e\\x07\\x08\\n" in run("show", history.address).stdout
    assert "\\x1b" in run("show", history.address, "--at", "\x1b").stderr


def test_lines_fit_the_terminal(history: DeltaHistory) -> None:
    history.commit(rows(history, f"{'long/' * 40}x.parquet"))
    for command in ("files", "check", "versions", "schema", "show"):
        lines = run(command, history.address, columns=80).stdout.splitlines()
        assert max(len(line) for line in lines) <= 80, command
    assert "…" in run("files", history.address, columns=80).stdout
    assert "…" not in run("files", history.address).stdout, "nothing is cut where there is no terminal"


def test_app_serves_the_script_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def ran(command: list[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", ran)
    assert run("app", "--port", "9000").exit_code == 3
    assert commands[0][:5] == [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]
    assert commands[0][5:9] == ["--server.address", "127.0.0.1", "--server.port", "9000"]
    assert app_script().is_file()


def test_help_is_quick_to_load() -> None:
    names = "import sys; import lakeview.cli; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", names], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"altair", "fsspec", "pyarrow", "streamlit", "sqlglot", "numpy", "pyspark"}
    assert not heavy & set(done.stdout.split())


def test_every_command_has_help() -> None:
    for name, command in main.commands.items():
        assert command.help, name
        assert run(name, "--help").exit_code == 0


def test_health_tells_what_the_overview_tells(history: DeltaHistory) -> None:
    done = run("health", history.address)
    assert done.exit_code == 0
    assert done.output.startswith("Readable")
    claims = [f["claim"] for f in json_of("health", history.address)]
    assert "There is no checkpoint yet" in claims


def test_a_finding_without_evidence_is_its_claim_alone() -> None:
    claim, evidence = (Finding("x", Severity.PASS, "Nothing ends", text) for text in ("", "5 days"))
    assert [*report([claim, evidence])][:2] == ["pass       Nothing ends", "pass       Nothing ends: 5 days"]
