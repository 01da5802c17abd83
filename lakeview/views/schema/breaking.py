"""SCHEMA_DIFF to what each change breaks: nothing, those who write, some who read, or all; and the rule why."""

from collections.abc import Mapping

import polars as pl

from lakeview.views.schema.diff import SCHEMA_DIFF

SAFE, WRITERS, SOME, ALL = "safe", "breaks writers", "breaks some readers", "breaks readers"
_CLASSES = (ALL, SOME, WRITERS, SAFE)
"""The classes of changes, worst first."""

BREAKING = pl.Schema({**SCHEMA_DIFF, "class": pl.String(), "rule": pl.String()})
"""SCHEMA_DIFF with the `class` of each change and the `rule` it follows from."""

_BY_WHAT: Mapping[str, tuple[str, str]] = {
    "readers of it": (ALL, "queries that name a dropped column fail; its values stay in old files and in old versions"),
    "readers; old files may not convert": (
        ALL,
        "the new type does not hold every value of the old one: files written before may not be readable as it",
    ),
    "readers by name": (SOME, "columns are found by id, so files stay as they are; queries that use the old name fail"),
    "readers by position": (SOME, "columns are found by id or name; readers that count columns read another one"),
    "readers that expect no nulls": (SOME, "new rows may be null where none was before"),
    "readers of the old type": (
        SOME,
        "old values all fit the new type, so old files are read as they are; readers of the old type overflow",
    ),
    "writers that leave it out": (WRITERS, "rows without a value for it are refused from now on"),
}
_BY_CHANGE: Mapping[str, str] = {
    "added": "it may be null: rows written before have none, and writers may leave it out",
    "nullability": "no nulls are written any more; readers that expect them still work",
    "comment": "a comment is for people",
    "default": "a default applies to rows written from now on",
    "metadata": "metadata changes neither names, types nor values",
    "same": "nothing changed",
}


def breaking(diff: pl.DataFrame) -> pl.DataFrame:
    """BREAKING from SCHEMA_DIFF."""
    classes = [
        _BY_WHAT.get(what or "", (SAFE, _BY_CHANGE.get(change, "nothing depends on it")))
        for change, what in diff.select("change", "breaks").iter_rows()
    ]
    return diff.with_columns(
        pl.Series("class", [name for name, _ in classes], dtype=pl.String),
        pl.Series("rule", [rule for _, rule in classes], dtype=pl.String),
    ).select(BREAKING.names())


def breaking_verdict(diff: pl.DataFrame) -> str:
    """One line: how many changes of which class, worst first; nothing changed where there are none."""
    counts = dict(breaking(diff)["class"].value_counts().iter_rows())
    parts = [f"{counts[name]:,} {_VERBS[name][counts[name] > 1]}" for name in _CLASSES if name in counts]
    return ", ".join(parts) or "nothing changed"


def rules(breaking: pl.DataFrame) -> list[tuple[str, str]]:
    """Each class and rule of BREAKING once, worst class first."""
    by_class = {name: breaking.filter(pl.col("class") == name)["rule"].unique(maintain_order=True) for name in _CLASSES}
    return [(name, rule) for name, rules in by_class.items() for rule in rules]


_VERBS = {
    ALL: ("breaks readers", "break readers"),
    SOME: ("breaks some readers", "break some readers"),
    WRITERS: ("breaks writers", "break writers"),
    SAFE: ("is safe", "are safe"),
}
