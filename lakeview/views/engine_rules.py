"""engines.toml to rules: what engines read and write, dated and with sources, and each format's words for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib.resources import files

import msgspec

MEASURED = "measured"
"""The source of an answer that was found by trying it."""


class Engine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one release of one engine does with tables of one format; see the head of engines.toml."""

    name: str
    version: str
    format: str
    checked: date
    sources: tuple[str, ...]
    reads: tuple[str, ...] = ()
    reads_not: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    writes_not: tuple[str, ...] = ()
    complete: tuple[str, ...] = ()
    read_only: bool = False
    spares_unused: bool = False
    note: str | None = None


class FormatWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a format says what it needs: `readers` and `writers` by legacy version, `rules` and `properties` that show a
    legacy feature in use; `traces` in a commit's metrics, `types` of columns and the metadata key of `defaults`;
    `commands` by purpose, with places to fill in."""

    title: str
    commands: Mapping[str, str]
    readers: Mapping[str, tuple[str, ...]] = {}
    writers: Mapping[str, tuple[str, ...]] = {}
    rules: Mapping[str, str] = {}
    properties: Mapping[str, str] = {}
    traces: Mapping[str, str] = {}
    types: Mapping[str, str] = {}
    defaults: str | None = None


class EngineRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file; `date`: when it was last gone over."""

    date: date
    formats: Mapping[str, FormatWords]
    engines: tuple[Engine, ...]


@cache
def engine_rules() -> EngineRules:
    """The rules that come with lakeview."""
    return msgspec.toml.decode((files("lakeview.views") / "engines.toml").read_bytes(), type=EngineRules)


def format_words(table_format: str) -> FormatWords | None:
    """The words of a format, None for one the rules know nothing about."""
    return engine_rules().formats.get(table_format)
