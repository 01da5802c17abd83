"""Arguments of public calls: of the kind that the call takes, or an error that names argument and value."""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from numbers import Integral
from typing import Any, NoReturn

from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import shorten

_LONGEST = 80
_LONGEST_DURATION = timedelta(days=365_000)


def text_of(value: object, place: str) -> str:
    """A text. InvalidRequestError, as of every function here, for anything else, at the argument `place`."""
    return _encodable(value, place) if isinstance(value, str) else _refuse(value, place, "text", "give a text")


def optional_text(value: object, place: str) -> str | None:
    """A text, or None."""
    return None if value is None else text_of(value, place)


def address_of(value: object, place: str = "address") -> str:
    """A folder or URL as text."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    return path if isinstance(path, str) else _refuse(value, place, "address", "give a folder or a URL as text")


def names_of(names: object, place: str) -> tuple[str, ...]:
    """Names, of which one may be given as text."""
    if isinstance(names, str):
        return (_encodable(names, place),)
    candidates = tuple(names) if isinstance(names, Iterable) and not isinstance(names, Mapping) else (None,)
    if not all(isinstance(name, str) for name in candidates):
        _refuse(names, place, "list of names", 'give names, such as ["id", "day"]')
    return tuple(_encodable(name, place) for name in candidates)


def file_columns(columns: object, choices: Sequence[str]) -> tuple[str, ...]:
    """Columns of a file listing, each once and among the choices."""
    names = names_of(columns, "columns")
    if unknown := [name for name in names if name not in choices]:
        raise InvalidRequestError(
            f"a file listing has no column {unknown[0]}",
            fix=f"choose from {', '.join(choices)}",
            kind="unknown-column",
        )
    if len(set(names)) < len(names):
        _refuse(columns, "columns", "list of different names", "give each name once")
    return names


def mapping_of(values: object, place: str) -> dict[str, Any]:
    """Names to values."""
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        _refuse(values, place, "mapping of names", 'give a dict, such as {"name": "value"}')
    for text in (*values, *(value for value in values.values() if isinstance(value, str))):
        _encodable(text, place)
    return dict(values)


def integer_of(value: object, place: str) -> int:
    """A whole number, of numpy too; a truth value is none, though Python counts with it."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        _refuse(value, place, "whole number", "give an int")
    return int(value)


def optional_integer(value: object, place: str) -> int | None:
    """A whole number, or None."""
    return None if value is None else integer_of(value, place)


def count_of(value: object, place: str) -> int:
    """A whole number from 0 on."""
    count = integer_of(value, place)
    return count if count >= 0 else _refuse(value, place, "number of things", "give 0 or more")


def optional_count(value: object, place: str) -> int | None:
    """A whole number from 0 on, or None."""
    return None if value is None else count_of(value, place)


def integers_of(values: object, place: str) -> tuple[int, ...]:
    """Whole numbers."""
    if not isinstance(values, Iterable):
        _refuse(values, place, "list of whole numbers", "give a list of int")
    return tuple(integer_of(value, place) for value in values)


def duration_of(value: object, place: str) -> timedelta:
    """A duration of a thousand years at most: the moment so long ago has to be in the calendar."""
    fix = "give a timedelta of a thousand years at most, such as timedelta(days=7)"
    return (
        value if isinstance(value, timedelta) and value < _LONGEST_DURATION else _refuse(value, place, "duration", fix)
    )


def days_of(value: float, place: str) -> timedelta:
    """A number of days from 0 on."""
    return _units_of(value, place, "days")


def hours_of(value: float, place: str) -> timedelta:
    """A number of hours from 0 on."""
    return _units_of(value, place, "hours")


def flag_of(value: object, place: str) -> bool:
    """True or False: a text such as "false" is true to Python, and None is not."""
    return value if isinstance(value, bool) else _refuse(value, place, "truth value", "give True or False")


def function_of(value: Any, place: str) -> Any:
    """A function."""
    return value if callable(value) else _refuse(value, place, "function", "give a function")


def _units_of(value: float, place: str, units: str) -> timedelta:
    try:
        duration = timedelta(**{units: value})
    except (TypeError, ValueError, OverflowError):  # no number, NaN, infinity
        return _refuse(value, place, f"number of {units}", "give a number, such as 7")
    if value < 0:
        _refuse(value, place, f"number of {units} to retain", "give 0 or more")
    return duration_of(duration, place)


def _encodable(text: str, place: str) -> str:
    """The text, unless it has half of a surrogate pair: no file can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse(text, place, "text of Unicode characters", "leave out half of a surrogate pair")
    return text


def _refuse(value: Any, place: str, kind: str, fix: str) -> NoReturn:
    raise InvalidRequestError(
        f"{place} is {shorten(repr(value), _LONGEST)}, which is no {kind}", fix=fix, place=place, kind="bad-argument"
    )
