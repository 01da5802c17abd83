"""What the README says, tried: its notebook lines run, its files and commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_ten_lines_run_on_the_demo_lake(demo_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    lines = [line for line in code.splitlines() if line.strip()]
    assert len(lines) <= 10
    (tmp_path / "demo-lake").symlink_to(demo_lake)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    results = []
    for line in lines:  # each line as a notebook's cell: what it shows is what it evaluates to
        if re.match(r"(import|[a-z, ]+ =) ?", line):
            exec(line, names)  # noqa: S102 (our own README)
        else:
            results.append(eval(line, names))  # noqa: S307 (our own README)
    history, deletion, change, plan, delayed = results
    for result in results:
        assert isinstance(result, pl.DataFrame)
        assert result.height > 0
    assert isinstance(history, pl.DataFrame)
    assert isinstance(deletion, pl.DataFrame)
    assert isinstance(plan, pl.DataFrame)
    assert history["version"][0] == history.height - 1
    assert deletion["reason"].null_count() == 0
    assert not plan["kept"].all()
    del change, delayed


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)]+)\)", README))))
def test_what_it_links_to_is_there(target: str) -> None:
    assert (ROOT / target).exists(), f"README links to {target}"


@pytest.mark.parametrize("command", sorted(set(re.findall(r"\bmake ([a-z]+)", README))))
def test_the_make_commands_exist(command: str) -> None:
    assert re.search(rf"^{command}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"README speaks of make {command}"
