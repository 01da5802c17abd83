"""Table properties: each is honoured, harmless, or refused by name before anything is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeview as lv
from lakeview.delta.properties import PROPERTIES, Effect
from lakeview.delta.table import DeltaTable
from lakeview.delta.write.property_checks import check_settable
from lakeview.model.errors import InvalidRequestError, LakeviewError, UnsupportedTableError
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.struct([("a", pa.int64()), ("t", pa.string())])),
        ("text", pa.string()),
        ("p", pa.int64()),
    ]
)
ROWS = pa.table(
    {
        "id": pa.array(range(100)),
        "s": pa.array([{"a": i, "t": "x"} for i in range(100)], SCHEMA.field("s").type),
        "text": pa.array(["abcdefgh"] * 100),
        "p": pa.array([1] * 100),
    }
)


def make_table(address: Path, properties: dict[str, str] | None = None, **more: Any) -> DeltaTable:
    table = lv.create_table(str(address), SCHEMA, properties=properties, **more)
    assert isinstance(table, DeltaTable)
    return table


def data_files(address: Path) -> list[Path]:
    return sorted(path for path in address.rglob("*.parquet") if "_delta_log" not in path.parts)


def bounds(address: Path) -> dict[str, Any]:
    """The minValues of the only file."""
    lines = (address / "_delta_log/00000000000000000001.json").read_text().splitlines()
    (add,) = [line["add"] for line in map(json.loads, lines) if "add" in line]
    minimums: dict[str, Any] = json.loads(add["stats"])["minValues"]
    return minimums


REFUSED: list[tuple[str, str, str, str, str]] = [
    ("delta.checkpointInterval", "-3", "property-value", "is '-3', which it cannot be", "give a whole number from 1"),
    ("delta.checkpointInterval", "0", "property-value", "is '0'", "a whole number from 1"),
    ("delta.checkpointInterval", "ten", "property-value", "is 'ten'", "a whole number from 1"),
    ("delta.deletedFileRetentionDuration", "a week", "property-value", "is 'a week'", "'interval 7 days'"),
    ("delta.deletedFileRetentionDuration", "interval -7 days", "property-value", "-7 days", "'interval 7 days'"),
    ("delta.logRetentionDuration", "30", "property-value", "is '30'", "'interval 7 days'"),
    ("delta.appendOnly", "yes", "property-value", "is 'yes'", "true or false"),
    ("delta.autoOptimize.autoCompact", "often", "property-value", "is 'often'", "one of true, false, auto, legacy"),
    ("delta.parquet.compression.codec", "zip", "property-value", "is 'zip'", "one of none"),
    ("delta.parquet.compression.codec", "lzo", "unsupported-property", "is lzo", "zstd or snappy"),
    ("delta.targetFileSize", "0", "property-value", "is '0'", "128mb"),
    ("delta.targetFileSize", "big", "property-value", "is 'big'", "128mb"),
    ("delta.dataSkippingNumIndexedCols", "-2", "property-value", "is '-2'", "a whole number from -1"),
    ("delta.dataSkippingStatsColumns", "a,,b", "property-value", "is 'a,,b'", "a comma list"),
    ("delta.dataSkippingStatsColumns", "id, nothing", "unknown-column", "names nothing, which", "choose from id"),
    ("delta.isolationLevel", "Dirty", "property-value", "is 'Dirty'", "Serializable"),
    ("delta.enableChangeDataCapture", "true", "unsupported-property", "would not", "delta.enableChangeDataFeed"),
    ("delta.minWriterVersion", "7", "unsupported-property", "would not honour", "lowest protocol"),
    ("delta.universalFormat.enabledFormats", "iceberg", "unsupported-property", "would not honour", "leave it out"),
    ("delta.internal.thing", "1", "unsupported-property", "would not honour", "leave it out"),
    ("delta.feature.appendOnly", "1", "property-value", "is '1'", "give supported"),
    ("delta.appendonly", "true", "unknown-property", "is no property", "set delta.appendOnly"),
    ("Delta.AppendOnly", "true", "unknown-property", "is no property", "set delta.appendOnly"),
    ("delta.enableThings", "true", "unknown-property", "is no property", "do not begin with delta."),
]


@pytest.mark.parametrize(("name", "text", "kind", "words", "fix"), REFUSED, ids=[f"{r[0]}={r[1]}" for r in REFUSED])
def test_a_property_that_would_not_be_honoured_is_not_set(
    tmp_path: Path, name: str, text: str, kind: str, words: str, fix: str
) -> None:
    def check(error: LakeviewError) -> None:
        assert (error.kind, error.place) == (kind, name)
        assert name in error.message
        assert words in error.message
        assert fix in str(error.fix)

    with pytest.raises((InvalidRequestError, UnsupportedTableError)) as caught:
        make_table(tmp_path / "new", {name: text})
    check(caught.value)
    assert not (tmp_path / "new").exists()
    table = make_table(tmp_path / "old")
    with pytest.raises((InvalidRequestError, UnsupportedTableError)) as again, table.transaction() as txn:
        txn.set_properties({name: text})
    check(again.value)
    assert table.refresh() is False


def test_properties_of_ones_own_and_switched_off_ones_are_kept_as_they_are(tmp_path: Path) -> None:
    properties = {
        "owner": "ada", "deltas": "mine", "delta.logRetentionDuration": "interval 60 days",
        "delta.enableExpiredLogCleanup": "false", "delta.isolationLevel": "WriteSerializable",
        "delta.checkpoint.writeStatsAsStruct": "false", "delta.compatibility.symlinkFormatManifest.enabled": "FALSE",
        "delta.columnMapping.mode": "none", "delta.setTransactionRetentionDuration": "90 days",
    }  # fmt: skip
    table = make_table(tmp_path, properties)
    table.append(ROWS)
    assert table.snapshot().properties == properties
    assert deltalake.DeltaTable(str(tmp_path)).metadata().configuration == properties


@pytest.mark.parametrize("name", ["", " \t", "a\0b", "delta.feature.a\nb", "owner\x1b[1m", "delta.constraints.a\0b"])
def test_a_name_that_cannot_be_typed_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequestError, match="the name of a property is ") as caught:
        make_table(tmp_path / "new", {name: "1"})
    assert caught.value.kind == "property-name"
    assert not (tmp_path / "new").exists()
    table = make_table(tmp_path / "old")
    with pytest.raises(InvalidRequestError, match="printable characters"):
        table.set_properties({name: "1"})
    with pytest.raises(InvalidRequestError, match=r"the name of a constraint|needs a name"):
        table.add_constraint(name, "id > 0")
    assert table.refresh() is False


def test_a_constraint_without_a_name_is_not_created_with_a_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"the name in delta\.constraints\. is '', which is blank"):
        make_table(tmp_path / "new", {"delta.constraints.": "id > 0"})


def test_a_property_that_is_no_text_is_refused(tmp_path: Path) -> None:
    wrong: Any = {"delta.checkpointInterval": 5}
    with pytest.raises(InvalidRequestError, match=r"delta\.checkpointInterval is 5, which it cannot be"):
        make_table(tmp_path, wrong)


BINDING: list[tuple[str, str]] = [
    ("delta.universalFormat.enabledFormats", "iceberg"),
    ("delta.compatibility.symlinkFormatManifest.enabled", "true"),
    ("delta.redirectReaderWriter-preview", '{"type": "PathBasedRedirect"}'),
    ("delta.parquet.compression.codec", "lzo"),
]


@pytest.mark.parametrize(("name", "text"), BINDING)
def test_a_table_whose_property_binds_every_commit_is_not_written_against_it(
    history: DeltaHistory, name: str, text: str
) -> None:
    history.create({"id": "long"}, properties={name: text})
    before = list(Path(history.address).rglob("*"))
    table = open_delta_table(history.address)
    with pytest.raises(UnsupportedTableError, match=name) as caught:
        table.append(pl.DataFrame({"id": [1]}))
    assert (caught.value.kind, caught.value.place) == ("unsupported-property", name)
    assert list(Path(history.address).rglob("*")) == before


HARMLESS: dict[str, str | None] = {
    "delta.checkpointInterval": "-3",
    "delta.deletedFileRetentionDuration": "some time",
    "delta.dataSkippingStatsColumns": ",",
    "delta.autoOptimize.autoCompact": "true",
    "delta.tuneFileSizesForRewrites": "true",
    "delta.parquet.format.version": "2.12.0",
    "delta.liquid.clusteringColumns": "id",
    "delta.propertyOfTomorrow": "1",
    "delta.minReaderVersion": "1",
}


def test_what_other_engines_keep_for_their_own_work_stops_no_write(history: DeltaHistory) -> None:
    history.create({"id": "long"}, properties=HARMLESS)
    table = open_delta_table(history.address)
    for i in range(11):
        table.append(pl.DataFrame({"id": [i]}))
    assert table.snapshot().properties == HARMLESS
    assert table.log.checkpoints()[-1].version == 10, "an interval that is none is ten"


SAMPLES = {
    "true or false": "true", "text": "something", "a comma list of columns": "a, b.c", "a size such as 128mb": "1g",
    "an interval such as 'interval 7 days'": "interval 1 week 2 hours",
}  # fmt: skip


@pytest.mark.parametrize("name", PROPERTIES)
def test_every_property_may_be_set_or_is_refused_as_its_effect_says(name: str) -> None:
    rule = PROPERTIES[name]
    choice = rule.expectation.removeprefix("one of ").replace(" or ", ", ").split(", ")[0]
    sample = "7" if rule.expectation.startswith("a whole number") else SAMPLES.get(rule.expectation, choice)
    if rule.effect in (Effect.ENGINE, Effect.BINDING):
        with pytest.raises(UnsupportedTableError, match=re.escape(name)):
            check_settable({name: sample})
        for text in rule.off:
            check_settable({name: text})
        return
    check_settable({name: sample})
    if rule.expectation != "text":
        with pytest.raises(InvalidRequestError, match=re.escape(name)):
            check_settable({name: "no, such: value,"})


# -- what is honoured


@pytest.mark.parametrize(
    ("codec", "recorded", "suffix"),
    [
        ("snappy", "SNAPPY", ".c000.snappy.parquet"),
        ("GZIP", "GZIP", ".c000.gzip.parquet"),
        ("uncompressed", "UNCOMPRESSED", ".c000.parquet"),
        ("zstd", "ZSTD", ".c000.zstd.parquet"),
        ("lz4_raw", "LZ4", ".c000.lz4.parquet"),
    ],
)
def test_files_are_compressed_as_the_table_says(tmp_path: Path, codec: str, recorded: str, suffix: str) -> None:
    table = make_table(tmp_path, {"delta.parquet.compression.codec": codec})
    table.append(ROWS)
    (file,) = data_files(tmp_path)
    assert file.name.endswith(suffix)
    footer = pq.read_metadata(file)
    assert {footer.row_group(0).column(i).compression for i in range(footer.num_columns)} == {recorded}
    table.checkpoint()
    (checkpoint,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    assert pq.read_metadata(checkpoint).row_group(0).column(0).compression == recorded
    assert pa.table(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()).num_rows == 100


@pytest.mark.parametrize(("version", "page_type"), [(None, 0), ("1.0.0", 0), ("2.12.0", 3)])
def test_files_have_the_data_pages_that_the_table_says(tmp_path: Path, version: str | None, page_type: int) -> None:
    table = make_table(tmp_path, {} if version is None else {"delta.parquet.format.version": version})
    table.append(ROWS)
    table.checkpoint()
    for file in (*data_files(tmp_path), *(tmp_path / "_delta_log").glob("*.checkpoint.parquet")):
        start = pq.read_metadata(file).row_group(0).column(0).data_page_offset
        # a page's header begins with its type, in Thrift's compact protocol: DATA_PAGE is 0, DATA_PAGE_V2 is 3
        assert file.read_bytes()[start : start + 2] == bytes([0x15, 2 * page_type]), file.name
    assert pa.table(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()).num_rows == 100


def test_a_version_of_data_pages_that_there_is_not_stops_the_write(history: DeltaHistory) -> None:
    history.create({"id": "long"}, properties={"delta.parquet.format.version": "3.0"})
    table = open_delta_table(history.address)
    with pytest.raises(UnsupportedTableError, match=r"is '3\.0', which no version of data pages is"):
        table.append(pl.DataFrame({"id": [1]}))
    assert table.checkpoint() == 0, "a checkpoint does not depend on it"


def test_files_get_about_as_large_as_the_table_says(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"delta.targetFileSize": "64kb", "delta.parquet.compression.codec": "none"})
    table.append(pa.table({"text": [f"{i * 7919 % 100_003:0200d}" for i in range(3_000)]}))
    sizes = [path.stat().st_size for path in data_files(tmp_path)]
    assert 8 <= len(sizes) <= 20
    assert max(sizes) < 3 * 64 * 1024 // 2
    assert table.scan().collect().height == 3_000


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("text, `s`", {"s": {"a": 0, "t": "x"}, "text": "abcdefgh"}),
        ("S.A", {"s": {"a": 0}}),
        ("", {}),
    ],
    ids=["a column and a struct", "a field in another case", "none"],
)
def test_statistics_are_of_the_columns_that_the_table_names(
    tmp_path: Path, columns: str, expected: dict[str, Any]
) -> None:
    both = {"delta.dataSkippingStatsColumns": columns, "delta.dataSkippingNumIndexedCols": "1"}
    make_table(tmp_path, both).append(ROWS)
    assert bounds(tmp_path) == expected


def test_texts_in_statistics_are_as_long_as_the_table_says(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"delta.dataSkippingStringPrefixLength": "3"})
    table.append(ROWS)
    assert bounds(tmp_path)["text"] == "abc"
    assert table.plan("text = 'abcdefgh'")["kept"].to_list() == [True]
    assert table.plan("text = 'abd'")["kept"].to_list() == [False]


def test_folders_are_random_where_the_table_says_so(tmp_path: Path) -> None:
    properties = {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "5"}
    table = make_table(tmp_path, properties, partition_by=["p"])
    table.append(ROWS)
    (file,) = data_files(tmp_path)
    assert len(file.parent.name) == 5
    assert file.parent.parent == tmp_path
    assert table.scan().filter(pl.col("p") == 1).collect().height == 100
    assert pa.table(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()).num_rows == 100
