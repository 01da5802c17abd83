"""The names of the package itself: completed before they are loaded, and suggested for misspelt ones."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lakeview as lv


def test_public_names_are_completed_before_they_are_loaded_and_no_others() -> None:
    code = "import lakeview as lv; print(*dir(lv))"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(lv.__all__) <= set(names)
    assert not {"Any", "TYPE_CHECKING", "annotations", "choose_allocator", "importlib", "sys"} & set(names)
    assert "model" in names  # a package that is loaded


def test_a_misspelt_name_is_told_as_one_of_the_package() -> None:
    with pytest.raises(AttributeError, match="module 'lakeview' has no attribute 'opentable'") as caught:
        _ = lv.opentable
    assert (caught.value.name, caught.value.obj) == ("opentable", lv)  # by which Python suggests open_table
