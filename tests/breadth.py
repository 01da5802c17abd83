"""Parameters of a test: those that differ in their code path for `make test`, the others for `make breadth`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def with_breadth(suite: Iterable[Any], every: Iterable[Any]) -> list[Any]:
    """The parameters of `suite`, then those of `every` that it lacks, marked `breadth`. A tuple is of several names."""
    first = list(suite)
    more = (one if isinstance(one, tuple) else (one,) for one in every if one not in first)
    return [*first, *(pytest.param(*values, marks=pytest.mark.breadth) for values in more)]
