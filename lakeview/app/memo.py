"""Functions of a table that cache their values in the memory of this server."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import streamlit as st

from lakeview.model.memory import Memory

_Value = TypeVar("_Value")
_Arguments = ParamSpec("_Arguments")


@st.cache_resource(show_spinner=False)
def memory() -> Memory:
    """Returns the memory of this server; a new one after `memory.clear()`."""
    return Memory()


def cached(
    entries: int, seconds: float | None = None, *, address: int = 0
) -> Callable[[Callable[_Arguments, _Value]], Callable[_Arguments, _Value]]:
    """Caches the last `entries` values of a function, for `seconds` if given.

    `address`: which of its positional arguments is the table's address. Arguments are hashable and positional.
    """

    def decorate(function: Callable[_Arguments, _Value]) -> Callable[_Arguments, _Value]:
        name = f"{function.__module__}.{function.__qualname__}"

        @wraps(function)
        def remembering(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Value:
            arguments = (*args, *sorted(kwargs.items()))
            return memory().get(
                name,
                str(args[address]),
                arguments,
                lambda: function(*args, **kwargs),
                entries=entries,
                seconds=seconds,
            )

        return remembering

    return decorate
