"""Two versions compared: the sentence, the files by partition, the settings, the statistics, the rows."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeview as lv
from lakeview import views
from lakeview.views.compare import rows
from tests.builders.actions import add, metadata, protocol, remove
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.pages import tables
from tests.views.at_once import row_difference

A, B = ({"name": name, "type": "long", "nullable": True, "metadata": {}} for name in "ab")

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "note", "required": False, "type": "string"},
]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> lv.Table:
    return lv.open_table(str(tables.good(tmp_path_factory.mktemp("compare") / "flights")))


def line(table: lv.Table) -> pl.DataFrame:
    return views.timeline.commits.timeline(table.history(), table.lifetimes())


def test_a_sentence_says_what_changed_and_who_did_it(good: lv.Table) -> None:
    text = views.compare.summary.sentence(good.snapshot(1), good.snapshot(4), line(good))
    size = views.units.format_bytes(sum(good.snapshot(4).files["size"]) - sum(good.snapshot(1).files["size"]))
    assert text == (
        f"flights from v1 (2026-03-02) to v4 (2026-03-05): +40 rows, 1 column added, 2 files written ({size}); "
        "in 3 commits by ingest, li."
    )


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (6, "; bad load v6, dest is null."),
        (5, "; bad load v6, dest is null; v5: a bad load too."),
        (2, "; bad load v6, dest is null; v5, v4, v3 and 1 more: bad loads too."),
    ],
)
def test_the_newest_bad_load_says_why_and_the_others_are_named(good: lv.Table, first: int, message: str) -> None:
    odd = line(good).with_columns(
        suspicious=pl.col("version") >= first, note=pl.lit("dest is null; repaired by v9", pl.String)
    )
    text = views.compare.summary.sentence(good.snapshot(1), good.snapshot(6), odd)
    assert text.endswith(message)


@pytest.mark.parametrize(
    ("repaired", "message"),
    [
        ([5, 6], "; bad load v6, dest is null, repaired by v7; v5 (repaired): a bad load too."),
        ([6], "; bad load v5, dest is null; v6 (repaired): a bad load too."),
    ],
)
def test_a_bad_load_that_was_repaired_says_so_and_comes_after_open_ones(
    good: lv.Table, repaired: list[int], message: str
) -> None:
    odd = line(good).with_columns(
        suspicious=pl.col("version") >= 5,
        note=pl.lit("dest is null; repaired by v7"),
        taken_back_by=pl.when(pl.col("version").is_in(repaired)).then(7),
    )
    text = views.compare.summary.sentence(good.snapshot(1), good.snapshot(6), odd)
    assert text.endswith(message)


def test_versions_without_a_difference_say_so(good: lv.Table) -> None:
    text = views.compare.summary.sentence(good.snapshot(4), good.snapshot(6), line(good))
    assert "as many rows, the same columns, the same files; in 2 commits by ingest, li." in text


@pytest.mark.parametrize(
    ("data_change", "message"),
    [(True, "as many rows, of which some may have changed"), (False, "the same rows in other files")],
)
def test_as_many_rows_in_other_files_are_the_same_only_where_no_commit_changed_data(
    tmp_path: Path, data_change: bool, message: str
) -> None:
    history = DeltaHistory(tmp_path / "t").create({"a": "long"})
    history.commit(history.data("a.parquet", {"a": [1, 2]}, stats={"numRecords": 2}))
    data_file = history.data("b.parquet", {"a": [1, 3]}, stats={"numRecords": 2})
    data_file["add"]["dataChange"] = data_change
    history.commit(remove("a.parquet", data_change=data_change), data_file)
    table = lv.open_table(str(tmp_path / "t"))
    text = views.compare.summary.sentence(table.snapshot(1), table.snapshot(2), line(table))
    assert f": {message}, the same columns, " in text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([B, A], "1 column moved"),
        ([{**A, "nullable": False}, B], "1 column with another nullability"),
        ([{**A, "metadata": {"comment": "a"}}, {**B, "metadata": {"comment": "b"}}], "2 columns with another comment"),
        ([{**A, "metadata": {"CURRENT_DEFAULT": "1"}}, B], "1 column with another default"),
        ([{**A, "metadata": {"owner": "li"}}, B], "1 column with other metadata"),
        ([A, B], "the same columns"),
    ],
)
def test_a_change_of_columns_of_any_kind_is_none_of_the_same_columns(
    fields: list[dict[str, object]], words: str, tmp_path: Path
) -> None:
    schemas = (json.dumps({"type": "struct", "fields": each}) for each in ([A, B], fields))
    first, second = (metadata(schema=schema) for schema in schemas)
    DeltaHistory(tmp_path / "t").commit(protocol(), first).commit(second)
    table = lv.open_table(str(tmp_path / "t"))
    text = views.compare.summary.sentence(table.snapshot(0), table.snapshot(1), line(table))
    assert f": as many rows, {words}, the same files; " in text


def test_files_are_compared_by_partition(good: lv.Table) -> None:
    diff = views.compare.versions.partition_difference(good.snapshot(2), good.snapshot(5))
    assert diff.schema == views.compare.versions.PARTITION_DIFF
    partitions = diff.select("partition_text", "files_added", "files_removed", "records_added")
    assert partitions.rows() == [
        ("month=1", 0, 0, 0),
        ("month=2", 0, 0, 0),
        ("month=3", 1, 0, 20),
        ("month=4", 1, 0, 60),
    ]
    back = views.compare.versions.partition_difference(good.snapshot(5), good.snapshot(2)).filter(
        pl.col("files_removed") > 0
    )
    assert back.select("partition_text", "records_removed").rows() == [("month=3", 20), ("month=4", 60)]


def test_rows_of_a_file_that_does_not_count_them_are_unknown(tmp_path: Path) -> None:
    table = lv.open_table(str(tables.silent(tmp_path / "events")))
    diff = views.compare.versions.partition_difference(table.snapshot(0), table.snapshot(1))
    assert diff.select("partition_text", "files_added", "records_added").rows() == [("all files", 1, None)]
    assert "an unknown number of rows" in views.compare.summary.sentence(table.snapshot(0), table.snapshot(1))


def test_position_deletes_leave_bounds_of_the_rows_between_two_versions(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    path = history.append("a", [{"id": i, "note": "x"} for i in range(9)])
    for name, positions in (("p", [0, 1]), ("q", [1, 2])):  # a row that both delete
        history.delete_positions(name, {path: positions})
    history.append("b", [{"id": i, "note": "x"} for i in range(30)])
    history.delete_equal("e", lv.open_table(history.address).snapshot().schema.fields[:1], [{"id": 3}])
    table = lv.open_table(history.address)
    versions = table.history()["version"].reverse().to_list()
    snapshots = [table.snapshot(version) for version in versions]
    texts = {
        (0, 1): "\N{MINUS SIGN}2 to 0",
        (1, 2): "\N{MINUS SIGN}2 to 0",
        (0, 3): "+26 to +30",
        (3, 1): "\N{MINUS SIGN}30 to \N{MINUS SIGN}28",
    }
    for (first, last), text in texts.items():
        assert f": {text} " in views.compare.summary.sentence(snapshots[first], snapshots[last])
    counts = [table.scan(version).collect().height for version in versions]
    for first, before in enumerate(snapshots):
        for last, after in enumerate(snapshots):
            difference = views.compare.versions.file_difference(before, after)
            least, most = difference.rows_between or (difference.rows, difference.rows)
            assert least is not None
            assert most is not None
            assert least <= counts[last] - counts[first] <= most
    pair = (snapshots[0], snapshots[1])
    rows = views.compare.summary.difference_tiles(*pair, views.compare.versions.partition_difference(*pair))[0]
    assert rows == ("Rows", "\N{GREATER-THAN OR EQUAL TO} 7", "\N{MINUS SIGN}2 to 0 from 9")


def test_a_file_with_other_deleted_rows_is_neither_added_nor_removed(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS, version=3)
    path = history.append("a", [{"id": i, "note": "x"} for i in range(9)])
    history.delete_vectors("v", {path: [0, 1]})
    table = lv.open_table(history.address)
    first, last = table.history()["version"].reverse()
    difference = views.compare.versions.file_difference(table.snapshot(first), table.snapshot(last))
    assert (difference.added_files, difference.removed_files, difference.redeleted_files, difference.rows) == (
        0,
        0,
        1,
        -2,
    )


def test_properties_and_protocol_are_compared(tmp_path: Path) -> None:
    log = tables.LogWriter(tmp_path / "t").create()
    changed = log.metadata(tables.FIELDS)
    changed["metaData"]["configuration"] = {"delta.appendOnly": "true"}
    log.commit("SET TBLPROPERTIES", changed, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}})
    table = lv.open_table(str(log.root))
    rows = views.compare.versions.settings_difference(table.snapshot(0), table.snapshot(1))
    assert rows.filter(pl.col("change") != "same").rows() == [
        ("delta.appendOnly", "added", None, "true"),
        ("delta.checkpointInterval", "dropped", "10", None),
        ("writer version", "changed", "2", "4"),
    ]
    assert rows.filter(change="same")["name"].to_list() == ["partitioned by", "reader version"]


def test_statistics_shift_by_column_and_a_new_one_says_so(good: lv.Table) -> None:
    sides = [good.snapshot(3), good.snapshot(6)]
    shift = views.compare.statistics.statistics_shift(sides[0], sides[1], good.statistics(3), good.statistics(6))
    assert shift.schema == views.compare.statistics.STATISTICS_SHIFT
    shifts = {row["column"]: (row["change"], row["before"], row["after"]) for row in shift.iter_rows(named=True)}
    assert shifts["delay"] == ("same", 0.2, 0.2)
    assert shifts["carrier"] == ("same", 0.0, 0.0)


def test_a_renamed_column_is_compared_with_itself(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1, "note": "x"}, {"id": 2, "note": "y"}])
    history.evolve([FIELDS[0], {**FIELDS[1], "name": "remark"}])
    history.append("b", [{"id": 3, "remark": None}, {"id": 4, "remark": None}])
    table = lv.open_table(history.address)
    first, last = table.history()["version"].reverse()
    sides = [table.snapshot(v) for v in (first, last)]
    shift = views.compare.statistics.statistics_shift(
        sides[0], sides[1], table.statistics(first), table.statistics(last)
    )
    row = shift.row(by_predicate=pl.col("column") == "remark", named=True)
    assert (row["change"], row["before"], row["after"]) == ("shifted", 0.0, 0.5)


def test_bases_worth_choosing_are_offered_each_once(good: lv.Table) -> None:
    choices = {5: "the version before", 3: "before the last schema change"}
    assert views.compare.versions.base_choices(line(good), 6) == choices
    assert views.compare.versions.base_choices(line(good), 0) == {}


def test_of_more_rows_than_are_shown_lost_and_gained_ones_come_by_turns() -> None:
    kinds = ["delete"] * 5 + ["insert"] * 3
    changes = pl.LazyFrame({"a": range(8), "_change_type": kinds})
    values = [row_difference(changes, limit).rows["a"].to_list() for limit in (4, 7, 8)]
    assert values == [[0, 5, 1, 6], [0, 5, 1, 6, 2, 7, 3], [0, 5, 1, 6, 2, 7, 3, 4]]


def test_rows_that_were_only_copied_are_no_difference() -> None:
    changes = pl.LazyFrame(
        {
            "a": [1, 2, 1, 3, 2],
            "_change_type": ["delete", "delete", "insert", "insert", "insert"],
            "_commit_version": [1] * 5,
            "_commit_timestamp": [None] * 5,
        },
        schema_overrides={"_commit_timestamp": pl.Datetime("us", "UTC")},
    )
    difference = row_difference(changes)
    assert (difference.gains, difference.losses, difference.rows_read) == (1, 0, 5)
    assert difference.rows.rows() == [(1, 3)]


def test_rows_are_told_apart_whatever_their_columns_are_called_and_hold() -> None:
    kinds = {"^a$": pl.Int64(), "a": pl.Int64(), "_difference": pl.String(), "m": pl.Map(pl.String(), pl.Int64())}
    lines = [(1, 1, "x", {"k": 1}), (2, 1, "x", {"k": 1}), (3, None, "y", None), (1, 1, "x", {"k": 1})]
    changes = (
        pl.DataFrame(lines, schema=kinds, orient="row")
        .lazy()
        .with_columns(
            _change_type=pl.Series(["delete", "insert", "insert", "insert"]),
            _commit_version=pl.lit(1, pl.Int64),
            _commit_timestamp=pl.lit(None, pl.Datetime("us", "UTC")),
        )
    )
    difference = row_difference(changes)
    assert (difference.gains, difference.losses, difference.rows_read) == (2, 0, 4)
    assert difference.rows.columns == ["_difference", "^a$", "a", "_difference_", "m"]
    assert difference.rows.select(pl.nth(0, 1, 2, 3)).rows() == [(1, 2, 1, "x"), (1, 3, None, "y")]
    assert difference.rows.schema["m"] == kinds["m"]
    assert row_difference(changes, 1).rows.rows() == difference.rows.rows()[:1]


def test_rows_of_one_key_are_among_the_first_ones_together_and_so_are_those_of_one_side() -> None:
    """Of 0 to 49 the first 20 went and 30 changed, listed backwards after 100 that came."""
    before = [(n, "open") for n in range(50)]
    after = [(n, "paid") for n in (*range(100, 200), *reversed(range(20, 50)))]
    kinds = {"id": pl.Int64(), "state": pl.String()}
    rows = pl.DataFrame([*after, *before], schema=kinds, orient="row")
    changes = rows.lazy().with_columns(
        _change_type=pl.Series(["insert"] * len(after) + ["delete"] * len(before)),
        _commit_version=pl.lit(1, pl.Int64),
        _commit_timestamp=pl.lit(None, pl.Datetime("us", "UTC")),
    )
    difference = row_difference(changes, 8)
    assert (difference.gains, difference.losses) == (130, 50)
    assert difference.rows.rows() == [
        (-1, 20, "open"), (1, 20, "paid"), (-1, 0, "open"), (1, 100, "paid"),
        (-1, 21, "open"), (1, 21, "paid"), (-1, 1, "open"), (1, 101, "paid"),
    ]  # fmt: skip
    no_key = changes.with_columns(id=pl.lit(7), state=pl.int_range(pl.len()).cast(pl.String))
    assert row_difference(no_key, 4).rows["state"].to_list() == ["130", "0", "131", "1"]


IDS = st.lists(st.integers(0, 3), max_size=6)


@given(IDS, IDS, st.integers(0, 6), st.sampled_from([1, 32 << 20]))
def test_a_part_of_a_difference_is_true_of_the_whole(
    losses: list[int], gains: list[int], count: int, fewest_bytes: int
) -> None:
    def batches(ids: list[int], kind: str) -> list[pl.DataFrame]:
        return [pl.DataFrame({"a": [n], "_change_type": [kind]}) for n in ids]

    schema = pl.Schema({"a": pl.Int64(), "_change_type": pl.String()})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_FEWEST_BYTES", fewest_bytes)
        first, second = rows.RowDifferenceSum(schema), rows.RowDifferenceSum(schema)
        for batch in batches(losses, "delete"):
            first.add(batch)
            second.add(batch)
        nothing_certain = first.part(None)
        for batch in batches(gains[:count], "insert"):
            second.add(batch)
        part = second.part("insert")
        for batch in batches(gains[count:], "insert"):
            second.add(batch)
        whole = second.whole()
    assert (nothing_certain.gains, nothing_certain.losses, nothing_certain.rows_undecided) == (0, 0, len(losses))
    assert nothing_certain.rows.is_empty()
    assert (whole.gains, whole.losses) == (
        (Counter(gains) - Counter(losses)).total(),
        (Counter(losses) - Counter(gains)).total(),
    )
    certain = Counter(gains[:count]) - Counter(losses)
    assert Counter(dict(part.rows.select("a", "_difference").rows())) == certain
    assert (part.gains, part.losses) == (certain.total(), 0)
    assert part.rows_undecided == (Counter(losses) - Counter(gains[:count])).total()


def test_rows_of_two_versions_differ_by_what_was_loaded_and_deleted(good: lv.Table) -> None:
    assert row_difference(good.changes(2, 3)).gains == 40
    back = row_difference(good.changes(5, 6))
    assert (back.gains, back.losses, back.rows_read) == (0, 0, 120)


def test_rows_of_versions_with_the_same_deletes_differ_by_their_files(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [{"id": 1, "name": "a", "required": False, "type": "long"}], version=2)
    first = history.append("f1", [{"a": value} for value in range(5)])
    history.append("f2", [{"a": 5}])
    history.delete_positions("d1", {first: [0, 1]})
    history.append("f3", [{"a": value} for value in range(3)])
    table = lv.open_table(history.address)
    versions = [table.snapshot(version) for version in table.history().sort("position")["version"]]
    assert versions[3].num_records is None, "a position may be named twice"
    differences = [views.compare.versions.file_difference(*pair).rows for pair in pairwise(versions[1:])]
    assert differences == [None, 3], "of the commit that deletes it is not known"
    assert ", the same data files, 1 delete file written." in views.compare.summary.sentence(versions[1], versions[2])


@pytest.mark.parametrize(("has_counts", "change"), [(True, "shifted"), (False, "same")])
def test_a_share_that_moves_only_by_what_a_file_does_not_count_is_no_shift(
    tmp_path: Path, *, has_counts: bool, change: str
) -> None:
    history = DeltaHistory(str(tmp_path)).commit(protocol(), metadata({"x": "long"}))
    history.commit(add("a", stats={"numRecords": 200, "nullCount": {"x": 100}}))
    history.commit(add("b", stats={"numRecords": 2, "nullCount": {"x": 0} if has_counts else {}}))
    table = lv.open_table(str(tmp_path))
    shift = views.compare.statistics.statistics_shift(
        table.snapshot(1), table.snapshot(2), table.statistics(1), table.statistics(2)
    )
    assert shift["change"].to_list() == [change]


def test_rows_that_deletes_leave_unknown_are_compared_as_bounds(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": i, "note": "x"} for i in range(4)])
    history.delete_positions("d", {"a": [1]})
    table = lv.open_table(history.address)
    before, after = (table.snapshot(version) for version in table.history()["version"].reverse())
    totals = views.compare.summary.comparison(before, after).filter(aspect="total", name="rows")
    assert totals.select("before", "after").rows() == [("4", "\N{GREATER-THAN OR EQUAL TO} 3")]
