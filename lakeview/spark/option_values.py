"""Values of options: what Spark hands over as text, by names in lower case, to numbers, flags, moments and words."""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

import msgspec

from lakeview.model.errors import InvalidRequestError

_Choice = TypeVar("_Choice", bound=StrEnum)
_TRUTH = {"true": True, "false": False}


def path_of(options: Mapping[str, str]) -> str:
    """Where the table is. InvalidRequestError if no option says it."""
    if not options.get("path"):
        raise InvalidRequestError(
            "no table is named",
            fix='use .load("address") or .save("address"); of a table of its catalog (saveAsTable, CREATE TABLE) Spark '
            "tells a Python source no path: add WITH (path 'address') to its name, or CREATE TEMPORARY VIEW name USING "
            "lakeview OPTIONS (path 'address'); a view of a declarative pipeline has none: see docs/pipelines.md",
            kind="no-path",
        )
    return options["path"]


def number(options: Mapping[str, str], name: str) -> int | None:
    """A whole number, None without the option. InvalidRequestError for anything else."""
    text = options.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"\d+", text):
        raise InvalidRequestError(
            f"{name} is {text!r}, which is no whole number", fix="give a whole number, without a unit"
        )
    return int(text)


def paths(options: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    """A JSON list of texts, None without the option. InvalidRequestError for anything else."""
    text = options.get(name.lower())
    if text is None:
        return None
    try:
        return tuple(msgspec.json.decode(text, type=list[str]))
    except msgspec.DecodeError as error:
        raise InvalidRequestError(f"{name} is no list of paths: {error}", fix="give a JSON list of text") from error


def flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """True or false. InvalidRequestError for anything else."""
    text = options.get(name)
    if text is None:
        return default
    if text.lower() not in _TRUTH:
        raise InvalidRequestError(f"{name} is {text!r}", fix="give true or false")
    return _TRUTH[text.lower()]


def choice(options: Mapping[str, str], name: str, choices: type[_Choice], default: _Choice) -> _Choice:
    """One of these words. InvalidRequestError for anything else."""
    text = options.get(name.lower(), default).lower()
    if text not in set(choices):
        raise InvalidRequestError(f"{name} is {text!r}", fix=f"give one of {', '.join(choices)}")
    return choices(text)


def moment(options: Mapping[str, str], name: str) -> datetime | None:
    """An ISO moment with its offset, None without the option. InvalidRequestError for anything else."""
    text = options.get(name)
    if text is None:
        return None
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequestError(f"{name} is {text!r}, which is no ISO moment") from error
    if timestamp.tzinfo is None:
        raise InvalidRequestError(f"{name} {text} has no offset", fix=f"write {timestamp.isoformat()}Z for UTC")
    return timestamp
