"""The rules in engines/*.toml: what engines read and write, by source and day, and each format's vocabulary."""

from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

Side = Literal["read", "write"]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The features that one source lists for one engine, and the day it was read; see the head of formats.toml."""

    source: str
    checked: date
    reads: tuple[str, ...] = ()
    reads_not: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    writes_not: tuple[str, ...] = ()
    complete: tuple[Side, ...] = ()

    def says(self, side: Side, feature: str) -> bool | None:
        """True if it lists the feature as supported, False if as unsupported; None if it does not list it."""
        can, cannot = (self.reads, self.reads_not) if side == "read" else (self.writes, self.writes_not)
        return True if feature in can else False if feature in cannot else None


class Engine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rules for one release of one engine and tables of one format."""

    name: str
    version: str
    sources: tuple[Source, ...]
    read_only: bool = False
    ignores_unused: bool = False
    note: str | None = None

    def verdict(self, side: Side, feature: str) -> tuple[bool | None, Source | None]:
        """Whether the engine supports a feature, and the source of that; None and None where no source names it."""
        for source in self.sources:
            if (says := source.says(side, feature)) is not None:
                return says, source
        for source in self.sources:
            if side in source.complete:
                return False, source
        return None, None


class Answers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The two formats of a sharing server's answers: for tables of plain files, and for all others."""

    plain: str
    other: str


class Features(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every feature that rules may speak of: those that readers must know too, and those of writers alone."""

    readers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()


class FormatWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a format says what it needs: `readers` and `writers` by legacy version, `rules` and `properties` that show a
    legacy feature in use; `traces` in a commit's metrics, `types` of columns and the metadata key of `defaults`; the
    property of a `name_mapping`, and the operations that add `foreign_files`, written for another table;
    `commands` by purpose, templates. `shared_as`: the format whose rules hold for recipients of such a table;
    `answers` and `of_the_log` (features no recipient sees) of that one.
    """

    title: str
    features: Features
    commands: Mapping[str, str] = {}
    readers: Mapping[str, tuple[str, ...]] = {}
    writers: Mapping[str, tuple[str, ...]] = {}
    rules: Mapping[str, str] = {}
    properties: Mapping[str, str] = {}
    traces: Mapping[str, tuple[str, ...]] = {}
    types: Mapping[str, str] = {}
    defaults: str | None = None
    name_mapping: str | None = None
    foreign_files: tuple[str, ...] = ()
    shared_as: str | None = None
    answers: Answers | None = None
    of_the_log: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    engines: tuple[Engine, ...]


@cache
def all_words() -> Mapping[str, FormatWords]:
    """The words of every format that there are rules for."""
    return msgspec.toml.decode(_read("formats"), type=dict[str, FormatWords])


@cache
def engines(table_format: str) -> tuple[Engine, ...]:
    """The engines there are rules for, in their order; none for a format that the rules do not know."""
    if table_format not in all_words():
        return ()
    return msgspec.toml.decode(_read(table_format), type=_File).engines


def _read(name: str) -> bytes:
    return (files("lakeview.views") / "engines" / f"{name}.toml").read_bytes()
