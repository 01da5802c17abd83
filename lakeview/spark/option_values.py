"""Values of options: what Spark hands over as text, by names in lower case, to numbers, flags, moments and words, to
the options of a store, and to those of writes to Iceberg tables alone. An option that means nothing is refused, with
what was meant."""

import difflib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

import msgspec

from lakeview.delta.properties import SPELLINGS, nearest
from lakeview.model.errors import InvalidRequestError
from lakeview.storage.access import StoreAccess
from lakeview.storage.options import COORDINATOR, option_text, option_value

_Choice = TypeVar("_Choice", bound=StrEnum)
_TRUTH = {"true": True, "false": False}
_SIZE = re.compile(r"(\d+)(?:([kmgtp])?b?)")
"""In units of 1024, as JavaUtils.byteStringAs of Spark."""

STORAGE_PREFIX = "storage."
"""What stands before the name of a storage option."""

SNAPSHOT_PROPERTY = "snapshot-property."
"""How options are called that go into the summary of a snapshot, as in Iceberg's own source."""

_OF_SUMMARIES = ("operation", "added-", "deleted-", "removed-", "total-", "changed-", "engine-", "spark-version",
    "spark.sql.streaming.")  # fmt: skip


def path_of(options: Mapping[str, str]) -> str:
    """Where the table is. InvalidRequestError if no option says it."""
    if not options.get("path"):
        raise InvalidRequestError(
            "no table is named",
            fix='use .load("address") or .save("address"); of a table of its catalog (saveAsTable, CREATE TABLE) Spark '
            "tells a Python source no path: use lakeview.spark.DeltaTable.forName(spark, 'name'), add WITH (path "
            "'address') to its name, or CREATE TEMPORARY VIEW name USING lakeview OPTIONS (path 'address'); "
            "a view of a declarative pipeline has none: see docs/pipelines.md",
            kind="no-path",
        )
    return options["path"]


def number(options: Mapping[str, str], name: str) -> int | None:
    """A whole number, None without the option. InvalidRequestError for anything else."""
    text = options.get(name.lower())
    if text is None:
        return None
    if not re.fullmatch(r"\d+", text):
        raise InvalidRequestError(
            f"{name} is {text!r}, which is no whole number", fix="give a whole number, without a unit"
        )
    return int(text)


def positive(options: Mapping[str, str], name: str) -> int | None:
    """A whole number above 0, None without the option. InvalidRequestError for anything else."""
    return _above_zero(number(options, name), name)


def positive_bytes(options: Mapping[str, str], name: str) -> int | None:
    """A number of bytes above 0, as Spark reads sizes: `1048576`, `1m`, `1mb`, in any case of letters. None without the
    option. InvalidRequestError for anything else."""
    text = options.get(name.lower())
    if text is None:
        return None
    size = _SIZE.fullmatch(text.strip().lower())
    if size is None:
        raise InvalidRequestError(
            f"{name} is {text!r}, which is no number of bytes",
            fix="give a whole number, with a unit such as k, m or g or without",
            place=name,
        )
    return _above_zero(int(size[1]) << 10 * " kmgtp".index(size[2] or " "), name)


def _above_zero(value: int | None, name: str) -> int | None:
    if value == 0:
        raise InvalidRequestError(f"{name} is 0: no batch would have a file", fix="give 1 or more, or leave it out")
    return value


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
    text = options.get(name.lower())
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
    text = options.get(name.lower())
    if text is None:
        return None
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequestError(f"{name} is {text!r}, which is no ISO moment") from error
    if timestamp.tzinfo is None:
        # Delta takes it for one in the time zone of the session. The process that plans a Python source has no session,
        # and gets neither its settings nor an environment variable with the zone
        raise InvalidRequestError(
            f"{name} {text} has no offset, and Spark tells a Python source no time zone of the session",
            fix=f"write {timestamp.isoformat()}Z for UTC; lakeview.spark.table(spark, address, at=text) knows the zone",
        )
    return timestamp


def point(options: Mapping[str, str], side: str) -> int | datetime | None:
    """What `<side>Version` or `<side>Timestamp` names, None without them. InvalidRequestError for both."""
    names = f"{side}Version", f"{side}Timestamp"
    if all(name.lower() in options for name in names):
        raise InvalidRequestError(f"{' and '.join(names)} are both given", fix="give one of them")
    version, at = number(options, names[0]), moment(options, names[1])
    return at if version is None else version


def starting_point(options: Mapping[str, str]) -> tuple[int | datetime | None, bool]:
    """As `point`, of `starting`; and whether its version is `latest`: what comes from now on."""
    if options.get("startingversion", "").lower() == "latest" and "startingtimestamp" not in options:
        return None, True
    return point(options, "starting"), False


def access_of(options: Mapping[str, str]) -> StoreAccess:
    """The storage options among options of Spark. InvalidRequestError for a value that begins as JSON and is none."""
    names = [name for name in options if name.startswith(STORAGE_PREFIX)]
    return StoreAccess({name.removeprefix(STORAGE_PREFIX): option_value(name, options[name]) for name in names})


def as_spark_options(access: StoreAccess, *, writing: bool = False) -> dict[str, str]:
    """The options of Spark that `access_of` reads, for reading or writing a table: a commit coordinator is of use to
    writers alone."""
    values = {name: value for name, value in access.options.items() if writing or name != COORDINATOR}
    return {f"{STORAGE_PREFIX}{name}": option_text(name, value) for name, value in values.items()}


def relocations(options: Mapping[str, str]) -> dict[str, str]:
    """Recorded prefixes to where they lie now. InvalidRequestError for a text that is no JSON object of texts."""
    try:
        return msgspec.json.decode(options.get("relocate", "{}"), type=dict[str, str])
    except msgspec.DecodeError as error:
        raise InvalidRequestError(
            f"relocate is no object of texts: {error}", fix='give a JSON object, such as {"s3://old": "s3://new"}'
        ) from error


def snapshot_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Properties for summaries, by name in lower case. InvalidRequestError for one that the writer itself reports."""
    properties = {n.removeprefix(SNAPSHOT_PROPERTY): v for n, v in options.items() if n.startswith(SNAPSHOT_PROPERTY)}
    if own := sorted(name for name in properties if name.startswith(_OF_SUMMARIES)):
        raise InvalidRequestError(
            f"{SNAPSHOT_PROPERTY}{own[0]} is what the writer itself reports of a snapshot",
            fix="choose another name",
            place=own[0],
        )
    return properties


_AS_STORAGE_OPTION = (
    f"give it as an option {STORAGE_PREFIX}<name> by its name in deltalake or fsspec, such as "
    f'.option("{STORAGE_PREFIX}aws_endpoint_url", ...), or in the file that LAKEVIEW_CONFIG names'
)

_ELSEWHERE = {
    "storage_options": _AS_STORAGE_OPTION,
    "storageoptions": _AS_STORAGE_OPTION,
    "optimizewrite": "repartition the rows before writing",
    "readchangefeed": "changes are read as batches: spark.read, with startingVersion and endingVersion",
    "compression": "set delta.parquet.compression.codec when the table is created",
}
"""Options of other sources, in lower case, to what serves here instead."""

_STORE_PREFIXES = ("fs.", "aws_", "azure_", "google_")

_OF_CATALOG = frozenset(("owner", "provider"))
"""Properties of a table of Spark's catalog, which arrive as options where CREATE TABLE asks for its columns."""


def known_options(
    options: Mapping[str, str], allowed_names: Sequence[str], doing: str, near: Sequence[str] = ()
) -> dict[str, str]:
    """Options by name in lower case, as Spark hands them over. InvalidRequestError for one that means nothing here,
    which may be meant as one of `near` too."""
    by_name = {name.lower(): value for name, value in options.items()}
    if by_name.keys() >= _OF_CATALOG:
        raise InvalidRequestError(
            "Spark's catalog makes tables that it cannot read: it does not tell a Python source their path",
            fix="CREATE TEMPORARY VIEW name USING lakeview OPTIONS (path 'address'), or load and save by address",
            kind="catalog-table",
        )
    names = {name.lower(): name for name in allowed_names}
    properties = SPELLINGS if doing == "writing" else {}
    prefixes = (STORAGE_PREFIX, SNAPSHOT_PROPERTY) if doing == "writing" else (STORAGE_PREFIX,)
    others = (name for name in by_name if not name.startswith(prefixes))
    if unknown := sorted(name for name in others if name not in names and name not in properties):
        names |= {name.lower(): name for name in near}
        raise _unknown_options(unknown, names, allowed_names, doing)
    return by_name


def _unknown_options(
    unknown: Sequence[str], names: Mapping[str, str], allowed_names: Sequence[str], doing: str
) -> InvalidRequestError:
    closest = [names[name] for name in difflib.get_close_matches(unknown[0], names, 1, 0.8)]
    suggestion = (nearest(unknown[0]) if doing == "writing" else None) or next(iter(closest), None)
    hint = f"did you mean {suggestion}? " if suggestion else ""
    elsewhere = _AS_STORAGE_OPTION if unknown[0].startswith(_STORE_PREFIXES) else _ELSEWHERE.get(unknown[0])
    return InvalidRequestError(
        f"{', '.join(unknown)}: no such option for {doing}",
        fix=elsewhere or f"{hint}known options: {', '.join(sorted(allowed_names))}",
        place=unknown[0],
        kind="unknown-option",
    )
