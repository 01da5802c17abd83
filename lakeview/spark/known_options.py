"""Which options there are: one that means nothing is refused, with what was meant."""

import difflib
from collections.abc import Mapping, Sequence

from lakeview.delta.properties import SPELLINGS, nearest
from lakeview.model.errors import InvalidRequestError
from lakeview.spark.option_values import SNAPSHOT_PROPERTY, STORAGE_PREFIX

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


def known_options(options: Mapping[str, str], allowed: Sequence[str], doing: str) -> dict[str, str]:
    """Options by name in lower case, as Spark hands them over. InvalidRequestError for one that means nothing here."""
    by_name = {name.lower(): value for name, value in options.items()}
    if by_name.keys() >= _OF_CATALOG:
        raise InvalidRequestError(
            "Spark's catalog makes tables that it cannot read: it does not tell a Python source their path",
            fix="CREATE TEMPORARY VIEW name USING lakeview OPTIONS (path 'address'), or load and save by address",
            kind="catalog-table",
        )
    names = {name.lower(): name for name in allowed}
    properties = SPELLINGS if doing == "writing" else {}
    prefixes = (STORAGE_PREFIX, SNAPSHOT_PROPERTY) if doing == "writing" else (STORAGE_PREFIX,)
    others = (name for name in by_name if not name.startswith(prefixes))
    if unknown := sorted(name for name in others if name not in names and name not in properties):
        near = (properties and nearest(unknown[0])) or names.get(_closest(unknown[0], names))
        raise _unknown_options(unknown, near, allowed, doing)
    return by_name


def _unknown_options(
    unknown: Sequence[str], near: str | None, allowed: Sequence[str], doing: str
) -> InvalidRequestError:
    hint = f"did you mean {near}? " if near else ""
    return InvalidRequestError(
        f"{', '.join(unknown)}: no such option for {doing}",
        fix=_elsewhere(unknown[0]) or f"{hint}known options: {', '.join(sorted(allowed))}",
        place=unknown[0],
        kind="unknown-option",
    )


def _elsewhere(name: str) -> str | None:
    return _AS_STORAGE_OPTION if name.startswith(_STORE_PREFIXES) else _ELSEWHERE.get(name)


def _closest(name: str, names: Mapping[str, str]) -> str:
    return next(iter(difflib.get_close_matches(name, names, 1, 0.8)), "")
