"""Versions of an Iceberg table on the command line: shown by their names, and asked for by them, branches and tags."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lakeview.cli import main
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.builders.iceberg_branches import BranchedHistory

FIELDS = [{"id": 1, "name": "id", "required": False, "type": "long"}]


class RandomIds(BranchedHistory):
    """Snapshots with ids as long as engines draw them."""

    first_id = 7 * 10**18


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """s1, tagged; s2, on main; s3, on the branch audit, with a row that a delete file names; s4 on main."""
    root = tmp_path_factory.mktemp("branches") / "t"
    history = RandomIds(root, FIELDS, location=str(root))
    first = history.append("a.parquet", [{"id": n} for n in range(5)])
    history.tag("first")
    history.append("b.parquet", [{"id": 5}])
    history.branch("audit")
    with history.on("audit"):
        history.append("c.parquet", [{"id": 6}, {"id": 7}])
    history.delete_positions("d.parquet", {first: [0]})
    return history.address


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": None}).invoke(main, list(words))


def cells(*words: str) -> list[list[str]]:
    """The lines of a table after its head, as words."""
    done = run(*words)
    assert done.exit_code == 0, done.output
    return [line.split() for line in done.stdout.splitlines()[1:]]


def test_history_gives_names_refs_and_ids(address: str) -> None:
    lines = cells("history", address)
    assert [(line[0], line[-1]) for line in lines] == [(f"s{n}", str(RandomIds.first_id + n)) for n in (4, 3, 2, 1)]
    assert [" ".join(line[-2:-1]) for line in lines if line[0] != "s2"] == ["main", "audit", "first"]
    narrow = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["history", address])
    assert str(RandomIds.first_id)[:6] not in narrow.stdout, "an id is left out, and not cut: versions have names"
    assert max(map(len, narrow.stdout.splitlines())) <= 80
    assert run("versions", address).stdout.startswith("All 4 versions can be read\n")
    assert cells("versions", address)[1][0] == "s4"
    assert [(line[0], line[1], line[2]) for line in cells("refs", address)] == [
        ("main", "branch", "s4"), ("audit", "branch", "s3"), ("first", "tag", "s1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--version", "s1"], "a.parquet"),
        (["--version", str(RandomIds.first_id + 1)], "a.parquet"),
        (["--ref", "first"], "a.parquet"),
        (["--ref", "audit"], "a.parquet b.parquet c.parquet"),
        ([], "a.parquet b.parquet"),
    ],
)
def test_a_version_by_name_number_branch_and_tag(address: str, words: list[str], expected: str) -> None:
    assert sorted(line[0].rpartition("/")[2] for line in cells("files", address, *words)[1:]) == expected.split()


def test_show_gives_the_name_and_the_least_rows(address: str) -> None:
    assert f"version    s4 ({RandomIds.first_id + 4})\n" in run("show", address).stdout
    assert "rows       \N{GREATER-THAN OR EQUAL TO} 5\n" in run("show", address).stdout
    assert "rows       6\n" in run("show", address, "--version", "s2").stdout


def test_a_version_of_delta_is_its_number(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create().commit()
    assert cells("history", history.address)[0][0] == "1"
    assert "version    0\n" in run("show", history.address, "--version", "v0").stdout
    assert run("refs", history.address).stdout == "a table of this format has no branches and no tags\n"


@pytest.mark.parametrize("word", ["s9", "soon", "9" * 400, ""])
def test_a_word_that_is_no_version(address: str, word: str) -> None:
    done = run("show", address, "--version", word)
    assert done.exit_code == 2
    assert "fix: `lakeview history` shows its versions\n" in done.stderr


def test_a_description_is_shown_once(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS, properties={"comment": "what was said", "owner": "li"})
    history.append("a", [{"id": 1}])
    shown = run("show", history.address).stdout
    assert (shown.count("what was said"), shown.count("owner")) == (1, 1)
    assert json.loads(run("show", history.address, "--json").stdout)["properties"]["comment"] == "what was said"


def test_ids_give_way_where_they_would_cut_the_names_of_columns(address: str) -> None:
    def head(columns: str) -> str:
        done = CliRunner(env={"COLUMNS": columns}).invoke(main, ["versions", address])
        return done.stdout.splitlines()[1]

    assert head("140").endswith(" id")
    assert not head("50").endswith(" id")


def test_a_table_without_snapshots_is_said_to_have_none(tmp_path: Path) -> None:
    address = IcebergHistory(tmp_path / "t", FIELDS).address
    assert "version    none: the table has no snapshot yet\n" in run("show", address).stdout
    assert json.loads(run("show", address, "--json").stdout)["version"] == -1
    assert run("history", address).stdout == "the table has no commits yet\n"
    assert run("quality", address).stdout.startswith("the table has no commits yet: no load can be judged\n")
    assert "the table has no commits yet" in run("compare", address).stderr
