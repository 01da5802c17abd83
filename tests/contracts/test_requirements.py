"""The pages of `docs/requirements` name modules and tests that are there, and say why where no test shows a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/requirements").glob("*.md"))
NAME = re.compile(r"`([^`]*)`")
FUNCTION = re.compile(r"^def (\w+)\(", re.MULTILINE)  # syntax trees of a hundred files take 0.7 s, this a hundredth


@cache
def defined_in(path: str) -> frozenset[str]:
    if not (ROOT / path).is_file():
        return frozenset()
    return frozenset(FUNCTION.findall((ROOT / path).read_text(encoding="utf-8")))


def faults(page: str) -> Iterator[str]:
    """What is wrong with each row of the page's tables."""
    for line in page.splitlines():
        if not line.startswith("| ") or line.startswith("| requirement |"):
            continue
        cells = [cell.strip() for cell in line[1:-1].split("|")]
        if len(cells) != 4:
            yield f"{len(cells)} cells: {line}"
            continue
        _, modules, tests, remark = cells
        yield from (name for name in NAME.findall(modules) if not (ROOT / name).is_file())
        for name in NAME.findall(tests):
            path, _, test = name.partition("::")
            if not test.startswith("test_") or test not in defined_in(path):
                yield name
        if not NAME.search(tests) and not remark:
            yield f"neither a test nor a reason: {line}"


def test_there_is_a_page_for_each_specification_and_for_spark() -> None:
    assert {page.stem for page in PAGES} >= {"delta", "iceberg", "sharing", "spark"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_modules_and_tests_of_a_page_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("\n| ") > 20
    assert list(faults(text)) == []


HERE = "`tests/contracts/test_requirements.py::test_a_wrong_row_is_reported`"


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (f"| a rule | `lakeview/delta/features.py` | {HERE} | |", None),
        ("| a rule | none | | tried by hand |", None),
        (f"| a rule | `lakeview/delta/nowhere.py` | {HERE} | |", "lakeview/delta/nowhere.py"),
        ("| a rule | none | `tests/nowhere.py::test_it` | |", "tests/nowhere.py::test_it"),
        (f"| a rule | none | {HERE.replace('wrong', 'right')} | |", HERE[1:-1].replace("wrong", "right")),
        ("| a rule | none | `tests/contracts/test_requirements.py` | |", "tests/contracts/test_requirements.py"),
        ("| a rule | none | | |", "neither a test nor a reason: | a rule | none | | |"),
        ("| a rule | none | |", "3 cells: | a rule | none | |"),
    ],
)
def test_a_wrong_row_is_reported(row: str, fault: str | None) -> None:
    assert list(faults(row)) == ([] if fault is None else [fault])
