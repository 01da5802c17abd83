"""`lakeview engines`: the answer first, problems before the engines that read and write the table."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from lakeview.cli import main
from tests.builders.actions import metadata
from tests.builders.history import DeltaHistory


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table whose second commit requires a reader feature."""
    folder = tmp_path_factory.mktemp("engines") / "t"
    history = DeltaHistory(folder)
    history.commit({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, metadata({"a": "long"}))
    features = {"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]}
    history.commit({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
    return str(folder)


def run(*words: str, columns: int | None = None) -> Result:
    done = CliRunner(env={"COLUMNS": None if columns is None else str(columns)}).invoke(main, ["engines", *words])
    assert done.exit_code == 0, done.output
    return done


def test_the_answer_comes_first_and_then_the_feature_to_blame(address: str) -> None:
    first, required, cause, _, head, *lines = run(address).stdout.splitlines()
    engines, read = lines[: lines.index("")], head.index("read")
    failing = [line for line in engines if line[read:].startswith("fails")]
    assert first.startswith(f"{len(failing)} of {len(engines)} engines fail to read v1, of ")
    assert required == "It requires typeWidening (v1)"
    assert cause.startswith("because of typeWidening (v1")
    assert head.split() == ["engine", "read", "write", "because", "of"]
    assert lines[: len(failing)] == failing, "problems first"
    assert all(line.endswith("typeWidening") for line in failing)


def test_an_earlier_version_has_its_own_answer(address: str) -> None:
    assert run(address, "--version", "v0").stdout.startswith("All ")


def test_no_engine_is_cut_on_a_narrow_terminal(address: str) -> None:
    assert "\N{HORIZONTAL ELLIPSIS}" not in run(address, columns=80).stdout


def test_programs_get_each_answer_with_its_sources(address: str) -> None:
    answers = json.loads(run(address, "--json").stdout)
    assert answers[0]["read"] == "no"
    assert answers[0]["blame"] == "typeWidening"
    assert all(answer["sources"] for answer in answers)
