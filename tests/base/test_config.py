"""The environment to settings."""

from __future__ import annotations

import pytest

from lakeview.config import Config, settings
from lakeview.errors import InvalidRequestError

ROOTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "nothing": ("", ()),
    "one folder": ("/lake", ("/lake",)),
    "folders, as the system separates paths": ("/lake:/demo", ("/lake", "/demo")),
    "folders, by commas": ("/lake, /demo ,", ("/lake", "/demo")),
    "an address": ("s3://lake/a", ("s3://lake/a",)),
    "an address and a folder": ("s3://lake/a,/demo", ("s3://lake/a", "/demo")),
}


@pytest.mark.parametrize(("text", "roots"), ROOTS.values(), ids=list(ROOTS))
def test_roots_are_read(text: str, roots: tuple[str, ...]) -> None:
    assert settings({"LAKEVIEW_ROOTS": text}).roots == roots


def test_an_empty_environment_gives_the_defaults() -> None:
    assert settings({}) == Config()
    assert settings({"LAKEVIEW_DEMO": "", "LAKEVIEW_MAX_LOG_FILE_BYTES": ""}) == Config()


def test_the_other_settings_are_read() -> None:
    found = settings({"LAKEVIEW_DEMO": "/demo", "LAKEVIEW_MAX_LOG_FILE_BYTES": "99"})
    assert (found.demo, found.max_log_file_bytes) == ("/demo", 99)


@pytest.mark.parametrize("text", ["many", "-1", "1e9", "\u00b2", "9" * 5000], ids=lambda t: t[:6])
def test_a_number_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"LAKEVIEW_MAX_LOG_FILE_BYTES is .*, which is no number") as caught:
        settings({"LAKEVIEW_MAX_LOG_FILE_BYTES": text})
    assert caught.value.fix == "set LAKEVIEW_MAX_LOG_FILE_BYTES to a whole number"
