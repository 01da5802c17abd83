"""`lakeview rows`, `partitions` and `compare` on a table of three versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import lakeview as lv
from lakeview.cli import main
from lakeview.model.schema import Schema
from lakeview.views.partitions.sizes import PARTITION_SIZES
from tests.builders.shares import SharingServer


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """v0 is empty, v1 has three rows of two days, v2 another column and 1,200 more rows of a third day."""
    address = str(tmp_path_factory.mktemp("look") / "t")
    rows = pl.DataFrame({"day_of": ["mon", "mon", "tue"], "count_of": [1, 2, 1_000]})
    table = lv.create_table(address, Schema.from_arrow(rows.to_arrow().schema), partition_by=["day_of"])
    table.append(rows)
    more = pl.DataFrame({"day_of": ["wed"] * 1_200, "count_of": range(1_200), "note": ["\x1b[31m"] * 1_200})
    with table.transaction() as txn:
        txn.evolve(Schema.from_arrow(more.to_arrow().schema))
        txn.append(more)
    return address


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": None}).invoke(main, list(words))


def test_rows_are_shown_as_they_are_written(address: str) -> None:
    assert run("rows", address, "--version", "1", "--where", "count_of > 1").stdout.splitlines() == [
        "day_of  count_of", "mon            2", "tue         1000",
    ]  # fmt: skip
    assert len(run("rows", address).stdout.splitlines()) == 21
    assert "\\x1b[31m" in run("rows", address, "--where", "day_of = 'wed'", "--limit", "1").stdout
    assert json.loads(run("rows", address, "--column", "count_of", "--where", "day_of = 'tue'", "--json").stdout) == [
        {"count_of": 1_000}
    ]
    assert run("rows", address, "--where", "count_of < 0").stdout == "no rows where count_of < 0\n"
    hint = "count_of = NULL is true for no row: write count_of IS NULL"
    assert run("rows", address, "--where", "count_of = NULL").stdout == f"no rows where count_of = NULL: {hint}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--where", "nope > 1"], "there is no column nope"),
        (["--where", "day_of > 1"], "cannot compare string"),
        (["--column", "nope"], "there is no column nope"),
        (["--version", "7"], "7"),
    ],
)
def test_rows_that_cannot_be_asked_for(address: str, words: list[str], message: str) -> None:
    done = run("rows", address, *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "fix: " in done.stderr


def test_partitions_add_up(address: str) -> None:
    answer, _, *rows = run("partitions", address).stdout.splitlines()
    assert answer == "3 partitions by day_of: no gap, no skew and no late arrival found"
    lines = [line.split() for line in rows]
    assert [(line[0], line[1], line[3]) for line in lines] == [
        ("day_of=mon", "1", "2"), ("day_of=tue", "1", "1"), ("day_of=wed", "1", "1,200"),
    ]  # fmt: skip
    assert sum(float(line[-1]) for line in lines) == pytest.approx(100, abs=0.2)
    assert len(json.loads(run("partitions", address, "--version", "1", "--json").stdout)) == 2


def test_what_is_wrong_with_partitions_comes_before_them(tmp_path: Path) -> None:
    days = pl.DataFrame({"day": [date(2026, 1, day) for day in (1, 2, 3, 6, 7)], "n": 1})
    table = lv.create_table(str(tmp_path), Schema.from_arrow(days.to_arrow().schema), partition_by=["day"])
    table.append(days)
    first, *rest = run("partitions", table.address).stdout.splitlines()
    assert first.startswith("2 partitions missing in the sequence: day=2026-01-04, day=2026-01-05")
    assert len(rest) == 1 + days.height


def test_files_of_no_partition_are_named_in_a_pipe_as_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    sizes = pl.DataFrame(
        {"partition_text": ["day_of=mon", None], "files": 1, "bytes": 1, "records": 1, "median_size": 1, "share": 0.5},
        schema=PARTITION_SIZES,
    )
    monkeypatch.setattr("lakeview.views.partitions.sizes.partition_sizes", lambda _: sizes)
    assert [line.split("  ")[0] for line in run("partitions", address).stdout.splitlines()[2:]] == [
        "day_of=mon", "no partition",
    ]  # fmt: skip
    assert json.loads(run("partitions", address, "--json").stdout)[1]["partition_text"] is None


def test_the_sentence_of_a_comparison_is_wrapped_to_the_terminal(address: str) -> None:
    narrow = CliRunner(env={"COLUMNS": "60"}).invoke(main, ["compare", address]).stdout.splitlines()
    assert max(map(len, narrow)) <= 60
    end = next(i for i, line in enumerate(narrow) if line.endswith("."))
    assert " ".join(narrow[: end + 1]) == run("compare", address).stdout.splitlines()[0]


def test_a_terminal_names_partitions_of_two_keys_by_their_values(tmp_path: Path) -> None:
    rows = pl.DataFrame({"month_of_departure": ["2026-09", "2026-10"], "origin_airport": ["EWR", "JFK"], "n": [1, 2]})
    keys = ["month_of_departure", "origin_airport"]
    lv.create_table(str(tmp_path / "t"), rows.to_arrow().schema, partition_by=keys).append(rows)
    narrow = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["compare", str(tmp_path / "t")]).stdout.splitlines()
    names = [line.split()[1] for line in narrow if line.startswith("partition")]
    assert names == ["2026-09/EWR", "2026-10/JFK"]
    assert "month_of_departure=2026-09/origin_airport=EWR" in run("compare", str(tmp_path / "t")).stdout


def test_compare_is_about_the_last_commit_or_two_versions(address: str) -> None:
    done = run("compare", address)
    assert "from v1 (" in done.stdout
    assert "+1,200 rows, 1 column added, 1 file written" in done.stdout
    rows = {(row["aspect"], row["name"]): (row["before"], row["after"]) for row in json.loads(
        run("compare", address, "v0", "v2", "--json").stdout
    )}  # fmt: skip
    assert rows["total", "rows"] == ("0", "1203")
    assert run("compare", address, "v0", "v2").stdout.splitlines()[2].split()[-2:] == ["0", "1,203"]
    assert rows["column", "note"] == (None, "string")
    assert rows["partition", "day_of=tue"] == (None, "1 file, 1 row")
    assert "no difference" in run("compare", address, "2", "2").stdout


def test_the_first_version_has_none_before_it(tmp_path: Path) -> None:
    address = str(tmp_path / "t")
    lv.create_table(address, Schema.from_arrow(pl.DataFrame({"id": [1]}).to_arrow().schema))
    assert "no version before 0 is known" in run("compare", address).stderr
    assert run("partitions", address).stdout == "the table has no partitions\n"


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[str]:
    """A shared table of two versions."""
    server = SharingServer()
    story = server.share("a.b.t", {"id": "long"})
    first, second = story.file({"id": [1]}), story.file({"id": [2, 3]})
    story.holds(first).holds(first, second)
    (tmp_path / "team.share").write_text(json.dumps(server.profile()))
    yield f"{tmp_path / 'team.share'}#a.b.t"
    server.close()


def test_a_share_is_compared_with_the_version_before_and_its_loads_are_not_judged(shared: str) -> None:
    assert "from v0 (unknown) to v1 (unknown): +2 rows, the same columns, 1 file" in run("compare", shared).stdout
    quality = run("quality", shared).stdout
    assert quality.startswith("no commits are left in the log, or they are not shared: no load can be judged\n\ncolumn")
    assert "fix: maintain it where it lies" in run("vacuum", shared).stderr
