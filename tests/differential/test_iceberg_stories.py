"""Histories that pyiceberg writes, at every snapshot, branch and tag, as it and DuckDB see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyiceberg.table import Table

from lakeview.iceberg.opening import open_iceberg
from lakeview.iceberg.table import IcebergTable
from tests.breadth import with_breadth
from tests.differential.iceberg_oracles import SAIL, duckdb_rows, pyiceberg_rows, sail_rows
from tests.differential.iceberg_stories import SPECS, START, STEPS, Step, Story, stories, table_of
from tests.golden.rows import differences, net

pytestmark = [
    pytest.mark.filterwarnings("ignore:Delete operation did not match any records:UserWarning"),
]

UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]
"""Shrinking takes minutes."""
FEW = settings(max_examples=2, suppress_health_check=list(HealthCheck), phases=UNSHRUNK)
MANY = settings(FEW, max_examples=8)
SPECS_OF_SUITE = ("bucket, hour and truncated text", "month, day and truncated decimal")
"""With five of the seven transforms, each of another kind; breadth has the others."""


def compare(theirs: Table) -> None:
    """Everything that both sides know of a table."""
    address = theirs.location().removeprefix("file://")
    ours = open_iceberg(address)
    compare_history(theirs, ours)
    for snapshot in theirs.metadata.snapshots:
        compare_snapshot(theirs, ours, snapshot.snapshot_id)
    if theirs.current_snapshot() is not None:
        assert differences(theirs.scan().to_arrow(), ours.scan().collect()) == []
        compare_filters(theirs, ours)


def compare_history(theirs: Table, ours: IcebergTable) -> None:
    """Snapshots in order, their operations, times and parents; branches and tags."""
    expected = [
        (s.snapshot_id, s.parent_snapshot_id, s.timestamp_ms, s.summary and s.summary.operation.value)
        for s in theirs.metadata.snapshots
    ]
    history = ours.history().sort("position")
    assert history.select("version", "parent", pl.col("timestamp").dt.epoch("ms"), "operation").rows() == expected
    for name, ref in theirs.refs().items():
        assert ours.snapshot(ref=name).version == ref.snapshot_id


def compare_snapshot(theirs: Table, ours: IcebergTable, snapshot_id: int) -> None:
    """Rows, files and counts of one snapshot."""
    rows = ours.scan(snapshot_id).collect()
    assert differences(pyiceberg_rows(theirs, snapshot_id), rows) == [], f"snapshot {snapshot_id}, pyiceberg"
    through_duckdb = duckdb_rows(theirs.metadata_location, snapshot_id)
    if through_duckdb is not None:
        assert differences(through_duckdb, rows) == [], f"{snapshot_id}, DuckDB"
    mine = ours.snapshot(snapshot_id)
    for content, files_here in ((0, mine.files), (1, mine.delete_files)):
        files = pl.DataFrame(theirs.inspect.files(snapshot_id)).filter(pl.col("content") == content)
        expected = files.select("file_path", "record_count", "file_size_in_bytes").rows()
        assert sorted(files_here.select("path", "records", "size").iter_rows()) == sorted(expected)
    assert mine.num_files == mine.files.height
    assert mine.num_records in (None, rows.height)
    parent = ours.history().row(by_predicate=pl.col("version") == snapshot_id, named=True)["parent"]
    if parent is not None:
        changed, between = (
            ours.changes(snapshot_id, snapshot_id).collect(),
            ours.difference(parent, snapshot_id).collect(),
        )
        assert net(changed, rows.columns) == net(between, rows.columns), f"changes of {snapshot_id}"


def compare_filters(theirs: Table, ours: IcebergTable) -> None:
    """A filtered scan is the filtered whole, and reads no file that the other reader spares."""
    whole = ours.scan().collect()
    for where, condition in conditions(theirs):
        rows = ours.scan().filter(where).collect()
        assert differences(whole.filter(where).to_arrow(), rows) == [], where
        assert differences(theirs.scan(row_filter=condition).to_arrow(), rows) == [], where
        paths = set(ours.plan(where).filter("kept")["path"])
        paths_needed = {t.file.file_path for t in theirs.scan(row_filter=condition).plan_files()}
        assert paths <= paths_needed, (where, "the other reader spares more files")


def conditions(table: Table) -> Iterator[tuple[pl.Expr, str]]:
    """The same conditions, for us and for the other reader."""
    cat, v, n = (table.schema().find_column_name(i) or "" for i in (2, 3, 8))
    day, month = date(1969, 12, 31), START + timedelta(days=10)
    yield pl.col("id") == 7, "id = 7"
    yield pl.col(cat) == "bb", f"{cat} = 'bb'"
    yield pl.col("d") < day, f"d < '{day}'"
    yield (pl.col("id") >= 500) & (pl.col("d") >= day), f"id >= 500 and d >= '{day}'"
    yield pl.col("z") >= month, f"z >= '{month.isoformat()}'"
    yield pl.col("m") < Decimal("0.000"), "m < 0.000"
    yield pl.col(n).is_null(), f"{n} is null"
    yield pl.col(v) < -2, f"{v} < -2.0"
    yield pl.col("yes") == True, "yes = true"  # noqa: E712  # a condition, not a truth
    yield pl.col(cat).str.starts_with("b"), f"{cat} like 'b%'"


def write_and_compare(story: Story, folder: Path) -> None:
    """Tell it, and compare everything."""
    with table_of(story, folder) as table:
        compare(table)


@FEW
@given(story=stories(5))
def test_a_short_story_is_read_as_others_read_it(tmp_path_factory: pytest.TempPathFactory, story: Story) -> None:
    write_and_compare(story, tmp_path_factory.mktemp("story"))


@pytest.mark.slow
@pytest.mark.breadth
@MANY
@given(story=stories(10))
def test_long_stories_are_read_as_others_read_them(tmp_path_factory: pytest.TempPathFactory, story: Story) -> None:
    write_and_compare(story, tmp_path_factory.mktemp("story"))


EVERYTHING = tuple(Step(what, 3 + 5 * number) for number, what in enumerate(STEPS))


@pytest.fixture(scope="module")
def stories_of_everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Table]]:
    """The table of a partition spec's name with which everything happens, written once."""
    folder = tmp_path_factory.mktemp("everything")
    numbers = {spec: str(number) for number, spec in enumerate(SPECS)}  # Sail opens no name that needs encoding
    with ExitStack() as stack:

        @cache
        def table(spec: str) -> Table:
            return stack.enter_context(table_of(Story(spec, 2, EVERYTHING), folder / numbers[spec]))

        yield table


@pytest.mark.slow
@pytest.mark.parametrize("spec", with_breadth(SPECS_OF_SUITE, SPECS))
def test_a_story_in_which_everything_happens(stories_of_everything: Callable[[str], Table], spec: str) -> None:
    compare(stories_of_everything(spec))


@pytest.mark.slow
@pytest.mark.skipif(not SAIL.exists(), reason=f"Sail has an environment of its own, which is not there: {SAIL}")
@pytest.mark.parametrize("specs", with_breadth([SPECS_OF_SUITE], [(tuple(SPECS),)]), ids=" and ".join)
def test_sail_reads_every_snapshot_as_we_do(
    stories_of_everything: Callable[[str], Table], specs: tuple[str, ...], tmp_path: Path
) -> None:
    requests = []
    for table in map(stories_of_everything, specs):
        address = table.location().removeprefix("file://")
        requests += [(address, snapshot.snapshot_id) for snapshot in table.metadata.snapshots]
    compared = 0
    for (address, snapshot), answer in zip(requests, sail_rows(requests, tmp_path / "rows"), strict=True):
        ours = open_iceberg(address)
        if isinstance(answer, str):
            # it looks for a%20b under the name a%2520b
            assert ours.snapshot(snapshot).files["path"].str.contains("%", literal=True).any(), answer
            continue
        assert differences(answer, ours.scan(snapshot).collect()) == [], (address, snapshot)
        compared += 1
    assert compared > len(requests) / 2
