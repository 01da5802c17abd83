"""Fifteen tasks of somebody with a table, each in at most three clicks, on the Delta and the Iceberg table of the demo.

The answer is text on the screen; what it must be is computed from the rows or the log by other readers. On one format
only: branches and tags, which Delta has not, and constraints in the table, which Iceberg has not (a rule that is typed
is on both). Tasks of one page are done in one visit where their clicks are the same.
"""

from __future__ import annotations

import csv
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Browser

from lakeview.app import cache
from lakeview.views.units import format_bytes
from tests.browser.hand import Hand
from tests.browser.independent import DeltaLog, IcebergMetadata, Independent, KernelLog
from tests.browser.visitor import Visitor, somebody
from tests.builders.history import DeltaHistory
from tests.builders.statistics import file_statistics

pytestmark = pytest.mark.browser


ON_BOTH = pytest.mark.parametrize(
    "table", [pytest.param("flights", id="Delta"), pytest.param("departures", id="Iceberg")], indirect=True
)
BAD_LOAD = {"flights": ("v75", "visibility"), "departures": ("s12", "arrival_delay")}
"""The load that brought nulls, and their column: Delta's is on the first line of the overview."""
SMALL = 1 << 20
MANY_NULLS = 10
"""Percent."""


@pytest.fixture(scope="module")
def flights(demo_lake: Path) -> DeltaLog:
    return DeltaLog(demo_lake, "flights")


@pytest.fixture(scope="module")
def departures(demo_lake: Path) -> IcebergMetadata:
    return IcebergMetadata(demo_lake, "departures")


@pytest.fixture
def table(request: pytest.FixtureRequest) -> Independent:
    table_files: Independent = request.getfixturevalue(request.param)
    return table_files


@pytest.fixture
def hand(visitor: Visitor, table: Independent) -> Hand:
    """Somebody on the table's overview."""
    return Hand(visitor, table=f"demo/{table.name}")


def number(table: Independent, label: str) -> int:
    """The number of the commit with this name."""
    return [commit.label for commit in table.commits].index(label)


def strangers(rows_read: list[dict[str, str]], real: pl.DataFrame) -> list[dict[str, str]]:
    """The rows shown that are none of the real ones; times apart, which a table shows in a format of its own."""
    rows = pl.DataFrame(rows_read)
    rows = rows.drop(name for name in rows.columns if isinstance(real.schema[name], pl.Datetime))
    texts = real.select(pl.col(rows.columns).cast(pl.String).fill_null(""))
    return rows.join(texts, on=rows.columns, how="anti").to_dicts()


@ON_BOTH
def test_1_what_changed_last_night_and_who(visitor: Visitor, table: Independent) -> None:
    hand = Hand(visitor, f"/overview?table=demo/{table.name}")  # this task with the overview itself
    hand.go("Compare")
    before, last = table.commits[-2:]
    files = table.added(len(table.commits) - 1)
    files_line = f"{files.height} files written ({format_bytes(sum(files['size']))})"
    hand.reads(f"from {before.label} (", f"to {last.label} (", files_line, f"in 1 commit by {last.writer}")


@ON_BOTH
def test_2_the_commit_that_made_nulls_jump_and_the_values_before(hand: Hand, table: Independent) -> None:
    label, column = BAD_LOAD[table.name]
    hand.go("Quality")  # the page begins with the column of the first finding
    loads = [row for row in hand.rows("tab") if row["null, %"]]
    at = [row["load"] for row in loads].index(label)
    for load in loads[at : at + 3]:
        values = table.rows_of_files(number(table, load["load"]))[column]
        assert float(load["null, %"]) == pytest.approx(values.null_count() / len(values) * 100, abs=0.05)
        assert [float(load[end]) if load[end] else None for end in ("min", "max")] == [values.min(), values.max()]
    jump, before = (float(load["null, %"]) for load in loads[at : at + 2])
    assert jump > before + 10


@ON_BOTH
def test_3_and_8_the_data_before_a_bad_load_and_rows_that_break_a_rule(hand: Hand, table: Independent) -> None:
    bad = number(table, BAD_LOAD[table.name][0])
    before = table.commits[bad - 1]
    hand.go("Data")
    hand.choose("pick_version", before.label)
    rows = table.rows(bad - 1)
    hand.reads(f"Rows of {before.label}", "the first 100 of", f"{rows.height:,}")
    assert strangers(hand.rows("own-columns-rows"), rows) == []
    delay = "arr_delay" if table.name == "flights" else "arrival_delay"
    hand.write("where", f"{delay} > 1000")
    late = rows.filter(pl.col(delay) > 1000)
    hand.reads(f"all {late.height} where {delay} > 1000")
    late_rows = hand.rows("own-columns-rows")
    assert len(late_rows) == late.height
    assert strangers(late_rows, late) == []


@ON_BOTH
def test_4_and_14_why_it_is_slow_and_the_rows_of_an_added_file(hand: Hand, table: Independent) -> None:
    live = table.commits[-1].live
    small = live.filter(pl.col("size") < SMALL)
    most, files = live["partition"].value_counts(sort=True).row(0)
    hand.go("Files")
    share = small.height / live.height
    hand.reads(f"files under 1 MiB: {share:.{0 if share == 1 else 1}%}".replace("%", " % of the count"))
    hand.reads(f"now {live.height}")
    if table.name == "flights":
        hand.reads(
            f"{small.height} of {live.height} files are smaller than 1 MiB",
            f"{files} of the {live.height} are in {most}",
        )
    hand.choose("order", "newest first")
    newest = hand.rows("files")[0]
    hand.press_row("files", 0)
    hand.reads("Its rows")
    added = table.added(number(table, newest["added by"]))
    digits = newest["file"].partition("\N{HORIZONTAL ELLIPSIS}")[0].rpartition("-")[2]  # the first of the file's UUID
    (path,) = added.filter(pl.col("path").str.contains(digits, literal=True))["path"]
    real = table.rows_of_paths([path])
    rows = [{name: row[name] for name in row if name in real.columns} for row in hand.rows("own-columns-file-rows")]
    assert strangers(rows, real) == []


def test_5_whether_a_vacuum_is_safe_on_delta(visitor: Visitor, flights: DeltaLog) -> None:
    week_ago = _ago(days=7)
    removed = {r["path"]: r for actions in flights.actions for r in flights.values(actions, "remove")}
    there = [r for r in removed.values() if (flights.folder / r["path"]).is_file()]
    old = [r for r in there if r["deletionTimestamp"] < week_ago]
    old_paths = {r["path"] for r in old}
    missing = removed.keys() - {r["path"] for r in there}
    dead_commits = [
        at for at, commit in enumerate(flights.commits)
        if old_paths & set(commit.live["path"]) and not missing & set(commit.live["path"])
    ]  # fmt: skip
    hand = Hand(visitor, table="demo/flights")
    hand.go("Health and retention")
    hand.reads(f"Current data is safe; {len(dead_commits)} old versions go, {_ranges(dead_commits, 'v')}")
    hand.reads(format_bytes(sum(r["size"] for r in old)), f"of {len(there)} old files")


def test_5_whether_an_expiration_is_safe_on_iceberg(visitor: Visitor, departures: IcebergMetadata) -> None:
    days_ago = _ago(days=5)
    retained = {ref["snapshot-id"] for ref in departures.metadata["refs"].values()}
    dead_snapshots = [
        snapshot for snapshot in departures.metadata["snapshots"]
        if snapshot["snapshot-id"] not in retained and snapshot["timestamp-ms"] < days_ago
    ]  # fmt: skip
    hand = Hand(visitor, table="demo/departures")
    hand.go("Health and retention")
    hand.reads(f"Current data is safe; {len(dead_snapshots)} old versions go")


@ON_BOTH
def test_6_the_rows_that_differ_between_two_versions(hand: Hand, table: Independent) -> None:
    hand.go("Compare")
    if table.name == "flights":
        base, after = number(table, "v31"), number(table, "v32")
        hand.choose("pick_version", "v32")
    else:
        base, after = number(table, "s12"), number(table, "s13")
    before, now = table.rows(base), table.rows(after)
    gained = now.join(before, on=now.columns, how="anti", nulls_equal=True)
    removed_rows = before.join(now, on=now.columns, how="anti", nulls_equal=True)
    hand.reads(f"+{gained.height:,} rows, \N{MINUS SIGN}{removed_rows.height:,}")


@ON_BOTH
def test_7_which_engines_can_read_it(hand: Hand, table: Independent) -> None:
    needs, reader = NEEDS[table.name]
    created = next((path.name for path in (table.folder / "metadata").glob("00000-*")), "")
    hand.go("Health and retention")
    hand.reads(f"This version requires: {needs.format(created=created)}.")
    assert table.rows(len(table.commits) - 1).height > 0, "this engine does read it"
    engines = {row["engine"]: row["read"] for row in hand.rows("engines-card")}
    assert [answer for engine, answer in engines.items() if engine.startswith(reader)] == ["\N{CHECK MARK} reads"]


NEEDS = {
    "flights": ("inCommitTimestamp (v0)", "deltalake"),
    "departures": ("format version 2 ({created}), position deletes (s11)", "PyIceberg"),
}
"""What the version needs, with the commit, or the metadata file without one, that brought it; and the engine that the
expected rows here are read with."""


def test_8_a_constraint_and_the_rows_that_break_it(visitor: Visitor, tmp_path: Path) -> None:
    rows = pl.DataFrame({"id": [1, 2, 3, 4], "fare": [10, -5, 30, -7]})
    history = DeltaHistory(tmp_path / "fares").create(
        {"id": "long", "fare": "long"}, properties={"delta.constraints.paid": "fare > 0"}
    )
    history.commit(history.data("f.parquet", rows.to_arrow(), stats=file_statistics(rows.to_arrow())))
    hand = Hand(visitor, table=history.address)
    hand.go("Quality")
    (rule,) = hand.rows("rules")
    assert (rule["verdict"], rule["true of every row"]) == ("\N{MULTIPLICATION X} violated", "fare > 0")
    hand.follow("Rows that violate paid")
    assert hand.rows("own-columns-rows") == [{"id": "2", "fare": "-5"}, {"id": "4", "fare": "-7"}]


@ON_BOTH
def test_9_and_12_a_partitions_files_as_csv_and_a_link_to_exactly_this(
    hand: Hand, table: Independent, browser: Browser, server: str
) -> None:
    partition = last_partition(table)
    hand.go("Files")
    hand.choose("partition", partition)
    files = table.commits[-1].live.filter(pl.col("partition") == partition)
    hand.reads(f"{files.height} in {table.commits[-1].label}")
    with hand.visitor.page.expect_download() as download:
        hand.press(hand.main.locator(".st-key-files-csv button").first)
    rows_read = list(csv.DictReader(download.value.path().read_text("utf-8").splitlines()))
    assert {row["partition_text"] for row in rows_read} == {partition}
    assert sorted((Path(row["path"]).name, int(row["records"] or -1)) for row in rows_read) == sorted(
        (Path(path).name, -1 if rows is None else rows) for path, rows in files.select("path", "rows").rows()
    )
    hand.clicks -= 1  # the link needs no file
    hand.press(hand.main.locator(".st-key-share button").first)
    link = hand.visitor.page.get_by_role("dialog").locator("code").inner_text()
    elsewhere = Hand(somebody(browser, server), link.removeprefix(server))
    elsewhere.reads(f"{files.height} in {table.commits[-1].label}")
    assert elsewhere.visitor.parameters() == hand.visitor.parameters()
    elsewhere.visitor.close()


def last_partition(table: Independent) -> str:
    """The last period, or the last month of an airport."""
    if table.name == "flights":
        return "period=12"
    return str(table.commits[-1].live.filter(pl.col("partition").str.ends_with("origin=JFK"))["partition"].max())


@ON_BOTH
def test_10_open_by_path(visitor: Visitor, table: Independent) -> None:
    hand = Hand(visitor, "/")
    hand.write("typed-address", str(table.folder))
    hand.reads("Is this table all right?", format_bytes(sum(table.commits[-1].live["size"])), str(table.folder))
    assert visitor.parameters()["table"] == str(table.folder)


def test_11_a_branch_and_a_tag(visitor: Visitor, departures: IcebergMetadata) -> None:
    every = {snapshot["snapshot-id"]: snapshot for snapshot in departures.metadata["snapshots"]}
    refs = departures.metadata["refs"]
    hand = Hand(visitor, table="demo/departures")
    hand.go("Timeline")
    hand.follow("Branches and tags")
    assert {row["name"]: (row["kind"], row["full id"]) for row in hand.rows("branches-table")} == {
        name: (ref["type"], str(ref["snapshot-id"])) for name, ref in refs.items()
    }
    hand.choose("pick_ref", "tag first-quarter")
    tagged = every[refs["first-quarter"]["snapshot-id"]]["sequence-number"]
    assert hand.main.locator(".st-key-pick_version input").first.input_value().startswith(f"s{tagged} ")


def test_13_the_columns_of_the_lake_with_many_nulls(visitor: Visitor, demo_lake: Path) -> None:
    names = ("airlines", "daily_delays", "flights", "long_delays")
    lake: list[Independent] = [DeltaLog(demo_lake, name) for name in names]
    lake.append(KernelLog(demo_lake, "claims"))
    lake += [IcebergMetadata(demo_lake, name) for name in ("departures", "weather")]
    many = set()
    for table in lake:
        rows = table.rows(len(table.commits) - 1)
        many |= {(table.name, c) for c in rows.columns if rows[c].null_count() > rows.height * MANY_NULLS / 100}
    hand = Hand(visitor, "/lake")
    hand.follow("Columns")
    hand.write("nulls-above", str(MANY_NULLS))
    hand.reads(f"{len(many)} columns of {len({name for name, _ in many})} tables")
    assert {(row["table"], row["column"]) for row in hand.rows("lake-columns")} == many


@ON_BOTH
def test_15_the_distribution_of_a_column(hand: Hand, table: Independent) -> None:
    rows = table.rows(len(table.commits) - 1)
    hand.go("Data")
    hand.follow("Profile")
    hand.choose("columns", "carrier")
    hand.visitor.charts()
    hand.reads(f"All {rows.height:,} rows of {table.commits[-1].label}")
    for carrier, count in rows["carrier"].value_counts(sort=True).head(10).rows():
        hand.reads(carrier, f"{count / rows.height * 100:.1f} %")


def _ago(days: int) -> float:
    """So many days ago, in milliseconds since 1970."""
    return (cache.now() - timedelta(days=days)).timestamp() * 1000


def _ranges(numbers: list[int], letter: str) -> str:
    """Runs of versions as their first and last, in one text."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] == n - 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(
        f"{letter}{run[0]}\N{EN DASH}{letter}{run[-1]}" if len(run) > 1 else f"{letter}{run[0]}" for run in runs
    )
