"""The rules about engines themselves: sources, dates, names of the specifications, nothing said both ways."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from itertools import combinations

import polars as pl
import pytest

from lakeview import views
from lakeview.delta import features
from lakeview.delta.lint.protocol import READER_AND_WRITER
from lakeview.iceberg.metadata.table_metadata import NEWEST_VERSION
from lakeview.sharing.client.endpoints import CAPABILITIES
from lakeview.views.engines.rules import Engine, Source, all_words, engines

FORMATS = sorted(all_words())
SOURCE = re.compile(r"https://\S+|measured|file \S+ of the connector, [\d.]+")
FIRST_READ = date(2026, 11, 22)
"""Before this day the rules were not gone over source by source."""


def statements() -> Iterator[tuple[str, Engine, Source]]:
    return ((name, engine, one) for name in FORMATS for engine in engines(name) for one in engine.sources)


def feature_names(table_format: str) -> frozenset[str]:
    words = all_words().get(table_format)
    assert words is not None
    return frozenset(words.features.readers + words.features.writers)


def test_every_statement_has_its_source_and_the_day_it_was_read() -> None:
    for _, engine, one in statements():
        assert SOURCE.fullmatch(one.source), (engine.name, one.source)
        assert FIRST_READ <= one.checked <= views.engines.compatibility.rules_date(), (engine.name, one.source)
        assert one.reads or one.reads_not or one.writes or one.writes_not, (engine.name, one.source)


def test_every_engine_has_somebody_who_speaks_of_it_and_stands_once() -> None:
    for name in FORMATS:
        table_engines = engines(name)
        assert table_engines
        assert all(engine.sources for engine in table_engines)
        assert len({(e.name, e.version) for e in table_engines}) == len(table_engines)


def test_features_are_those_of_the_specifications() -> None:
    for name, engine, one in statements():
        features = {*one.reads, *one.reads_not, *one.writes, *one.writes_not}
        assert features <= feature_names(name), (engine.name, features - feature_names(name))


def test_only_what_readers_must_know_is_read() -> None:
    for name, engine, one in statements():
        words = all_words()[name]
        assert {*one.reads, *one.reads_not} <= set(words.features.readers), (engine.name, one.source)
        assert not set(words.features.readers) & set(words.features.writers)


def test_nobody_says_yes_and_no_at_once() -> None:
    for _, engine, one in statements():
        assert not set(one.reads) & set(one.reads_not), engine.name
        assert not set(one.writes) & set(one.writes_not), engine.name
    for name in FORMATS:
        for engine in engines(name):
            for one, other in combinations(engine.sources, 2):
                for side in ("reads", "writes"):
                    both = set(getattr(one, side)) & set(getattr(other, f"{side}_not"))
                    both |= set(getattr(other, side)) & set(getattr(one, f"{side}_not"))
                    assert not both, (engine.name, both)


def test_a_list_that_is_whole_is_the_only_one_of_its_side() -> None:
    for name in FORMATS:
        for engine in engines(name):
            for one in engine.sources:
                for side in one.complete:
                    others = [o for o in engine.sources if o is not one]
                    assert not any(o.reads if side == "read" else o.writes for o in others), (engine.name, side)


def test_who_writes_a_feature_that_readers_must_know_reads_it() -> None:
    for name in FORMATS:
        words = all_words()[name]
        for engine in engines(name):
            features = {f for one in engine.sources for f in one.writes} & set(words.features.readers)
            assert all(engine.verdict("read", f)[0] is True for f in features), (engine.name, features)


def test_who_only_reads_is_not_said_to_write() -> None:
    for name, engine, one in statements():
        assert not engine.read_only or not (one.writes or one.writes_not), engine.name
        assert engine.read_only or name != "sharing", engine.name


@pytest.mark.parametrize("table_format", FORMATS)
def test_what_no_source_speaks_of_is_never_a_yes(table_format: str) -> None:
    needs = pl.DataFrame(
        [("timeTurner", True, True, None, None, None, None)], schema=views.engines.requirements.NEEDS, orient="row"
    )  # fmt: skip
    for row, engine in zip(
        views.engines.compatibility.compatibility(needs, table_format).iter_rows(named=True),
        engines(table_format),
        strict=True,
    ):
        whole = any("read" in one.complete for one in engine.sources)
        assert row["read"] == ("no" if whole else "unknown"), engine.name
        assert row["write"] != "yes", engine.name


def test_the_names_of_delta_features_are_those_the_reader_and_the_doctor_know() -> None:
    words = all_words()["delta"]
    readers, writers = set(words.features.readers), set(words.features.writers)
    legacy = {name for names in features.LEGACY_WRITER_FEATURES.values() for name in names}
    assert readers >= features.READER_FEATURES | features.CATALOG_FEATURES | READER_AND_WRITER
    assert features.WRITER_FEATURES | legacy <= readers | writers
    assert {int(v): names for v, names in words.writers.items()} == features.LEGACY_WRITER_FEATURES


def test_the_names_of_iceberg_features_are_all_that_a_table_can_ask_for() -> None:
    words = all_words()["iceberg"]
    features = {*words.traces, *words.types.values(), "default values", "ORC files", "Avro files"}
    features |= {f"format version {number}" for number in range(1, NEWEST_VERSION + 1)}
    assert features == set(words.features.readers)


def test_the_names_of_shared_features_are_answers_and_features_of_delta() -> None:
    words = all_words()["sharing"]
    assert words.answers is not None
    of_delta = set(all_words()["delta"].features.readers)
    assert set(words.features.readers) <= {words.answers.plain, words.answers.other} | of_delta
    assert set(words.of_the_log) <= of_delta
    assert not set(words.of_the_log) & set(words.features.readers)


def ours(table_format: str) -> Source:
    (engine,) = (e for e in engines(table_format) if e.name == "lakeview")
    (one,) = engine.sources
    assert one.source == "measured"
    return one


def test_the_rules_about_ourselves_are_what_we_implement() -> None:
    assert set(ours("delta").reads) == features.READER_FEATURES
    assert set(ours("delta").writes) == features.WRITER_FEATURES
    assert set(ours("iceberg").reads) == set(all_words()["iceberg"].features.readers)
    assert {f.lower() for f in ours("sharing").reads if not f.endswith(" responses")} == CAPABILITIES.reader_features
