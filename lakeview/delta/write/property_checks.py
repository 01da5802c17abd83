"""Properties that are set, and those of a table that is written: honoured, harmless, or refused by name."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from lakeview.delta.data.row_tracking import MATERIALIZED
from lakeview.delta.properties import (
    CODEC,
    FEATURE_VALUES,
    FORMAT_VERSION,
    INDEXED,
    PROPERTIES,
    Effect,
    is_known,
    nearest,
    value,
)
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.frames import CHANGES
from lakeview.model.printable import choices, printable, shorten
from lakeview.model.schema import Schema, leaf_name
from lakeview.model.type_tree import nodes

_OWN_CODECS: Mapping[str, str] = {
    "none": "none", "uncompressed": "none", "snappy": "snappy", "gzip": "gzip", "lz4": "lz4", "lz4_raw": "lz4",
    "lz4raw": "lz4", "brotli": "brotli", "zstd": "zstd",
}  # fmt: skip
_FEED_COLUMNS = frozenset(CHANGES.names())
_CONSTRAINTS = "delta.constraints."
_FEATURES = (_CONSTRAINTS, "delta.feature.")
"""Families whose members name what a table needs of writers: the features decide."""


def check_settable(properties: Mapping[str, Any]) -> None:
    """Refuses properties that this writer would not honour once they are set; others than `delta.*` are the user's own.

    InvalidRequestError (kinds property-name, unknown-property, property-value) for a name that cannot be typed or that
    no engine knows and a value that cannot be meant, UnsupportedTableError (kind unsupported-property) for what is not
    implemented. Features are judged later.
    """
    for name, text in properties.items():
        check_name(name, "the name of a property")
        if not isinstance(text, str):
            raise _bad_value(name, text, "text: properties are recorded as text")
        if name.lower().startswith("delta."):  # other engines ignore their case
            _check_settable(name, text)


def check_name(name: str, subject: str) -> None:
    """InvalidRequestError for a name that is blank, or has a character that is not printable: such a name cannot be
    typed, and libraries in C take a null character for its end."""
    if name.strip() and name.isprintable():
        return
    fault = "which holds a character that cannot be printed" if name.strip() else "which is blank"
    raise InvalidRequestError(
        f"{subject} is {shorten(repr(name), 80)}, {fault}",
        fix="give a name of printable characters, such as owner",
        place=printable(name),
        kind="property-name",
    )


def _check_settable(name: str, text: str) -> None:
    if name.startswith(_FEATURES):
        check_name(name.split(".", 2)[2], f"the name in {name}")
        if name.startswith("delta.feature.") and text.lower() not in FEATURE_VALUES:
            raise _bad_value(name, text, "supported")
        return
    entry = PROPERTIES.get(name)
    if entry is None and not is_known(name):
        near = nearest(name)
        raise InvalidRequestError(
            f"{name} is no property that Delta tables have",
            fix=f"set {near}" if near else "leave it out; names of your own do not begin with delta.",
            place=name,
            kind="unknown-property",
        )
    if entry is not None and entry.parse(text) is None:
        raise _bad_value(name, text, entry.expectation)
    if entry is None or (entry.effect in (Effect.ENGINE, Effect.BINDING) and text.lower() not in entry.off):
        raise UnsupportedTableError(
            f"{name} is {text!r}, which this writer would not honour",
            fix=(entry and entry.fix) or "leave it out, or set it with an engine that implements it",
            place=name,
            kind="unsupported-property",
        )
    if name == CODEC:
        codec({name: text})


def check_changes(properties: Mapping[str, Any], schema: Schema) -> None:
    """As `check_settable`, for properties of a table with these columns, which may have rows.

    InvalidRequestError also for a column of statistics that is not there, and for a constraint: rows have to satisfy
    it first.
    """
    check_settable(properties)
    check_statistics_columns(schema, properties)
    for name in properties:
        if name.startswith(_CONSTRAINTS):
            raise InvalidRequestError(
                f"{name} is a constraint, which the rows there are have to satisfy first",
                fix="add it with add_constraint()",
                place=name,
                kind="constraint-as-property",
            )


def check_honoured(properties: Mapping[str, str], address: str) -> None:
    """UnsupportedTableError for a table with a property that each of its commits has to keep, and that ours do not.

    Properties that only guide engines' own work, that no engine knows, or whose value is none, do not stop a write.
    """
    for name, entry in PROPERTIES.items():
        text = properties.get(name)
        if text is not None and entry.effect is Effect.BINDING and text.lower() not in entry.off:
            raise UnsupportedTableError(
                f"{address} has {name} = {text}: every commit has to keep what it promises to readers, and this writer "
                "does not",
                fix="write it with an engine that implements the property, or unset it there",
                place=name,
                kind="unsupported-property",
            )


def check_statistics_columns(schema: Schema, properties: Mapping[str, str]) -> None:
    """InvalidRequestError for a column that `delta.dataSkippingStatsColumns` names and the schema does not have."""
    paths: Sequence[tuple[str, ...]] = value(properties, INDEXED) or ()
    names = {tuple(part.casefold() for part in node.path) for node in nodes(schema)} if paths else set()
    for path in paths:
        if tuple(part.casefold() for part in path) not in names:
            raise InvalidRequestError(
                f"{INDEXED} names {leaf_name(path)}, which is no column of the table",
                fix=choices(leaf_name(path), schema.names),
                place=INDEXED,
                kind="unknown-column",
            )


def check_reserved_columns(schema: Schema, properties: Mapping[str, str]) -> None:
    """InvalidRequestError for a column with the name of one that files have beside the table's: those of the change
    data feed where it is enabled, and those that keep ids of rows which moved."""
    has_feed = value(properties, "delta.enableChangeDataFeed")
    # "They must not be equal to the name of any other column in the table's schema"  delta protocol, Row Tracking
    own_columns = {properties[key].casefold() for key in MATERIALIZED.values() if key in properties}
    for field in schema:
        if has_feed and field.name.casefold() in _FEED_COLUMNS:
            raise _reserved_property(field.name, "the change data feed", "leave delta.enableChangeDataFeed off")
        if field.stored_name.casefold() in own_columns:
            raise _reserved_property(field.name, "row tracking", "choose another name")


def _reserved_property(name: str, feature: str, fix: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"column {name} has a name that {feature} uses for itself",
        fix=f"rename the column, or {fix}",
        place=name,
        kind="reserved-column",
    )


def codec(properties: Mapping[str, str]) -> str:
    """How data files are compressed, in the words of Arrow: zstd where nothing is set.

    UnsupportedTableError for a codec that is not written.
    """
    name = value(properties, CODEC) or "zstd"
    if name not in _OWN_CODECS:
        raise UnsupportedTableError(
            f"{CODEC} is {name}, and data files are not compressed so here",
            fix="set it to zstd or snappy",
            place=CODEC,
            kind="unsupported-property",
        )
    return _OWN_CODECS[name]


def checkpoint_codec(properties: Mapping[str, str]) -> str | None:
    """How the table says that checkpoints are compressed, in the words of Arrow; None where it does not, or not in a
    way of ours: a checkpoint never fails its commit."""
    return _OWN_CODECS.get(value(properties, CODEC) or "")


def checkpoint_page_version(properties: Mapping[str, str]) -> Literal["1.0", "2.0"]:
    """As `page_version`, and 1.0 for a version that is none: a checkpoint never fails its commit."""
    return "2.0" if (value(properties, FORMAT_VERSION) or "").startswith("2") else "1.0"


def page_version(properties: Mapping[str, str]) -> Literal["1.0", "2.0"]:
    """The version of the data pages of Parquet files, 1.0 where nothing is set.

    UnsupportedTableError for a format version that no protocol has: "writers SHOULD validate this property and abort".
    """
    text = properties.get(FORMAT_VERSION, "1.0.0")
    if value({FORMAT_VERSION: text}, FORMAT_VERSION) is None:
        raise UnsupportedTableError(
            f"{FORMAT_VERSION} is {shorten(text, 40)!r}, which no version of data pages is",
            fix="set it to 1.0.0 or 2.12.0",
            place=FORMAT_VERSION,
            kind="unsupported-property",
        )
    return "2.0" if text.startswith("2") else "1.0"


def _bad_value(name: str, text: object, expectation: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{name} is {text!r}, which it cannot be", fix=f"give {expectation}", place=name, kind="property-value"
    )
