"""The files page: sizes, the listing with everything in the URL, and one file looked into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.builders.actions import add, metadata
from tests.builders.history import DeltaHistory
from tests.builders.iceberg import IcebergHistory
from tests.pages import tables
from tests.pages.app import open_page, text
from tests.pages.tables import LogWriter, flights

pytestmark = pytest.mark.app


def table_with(app: AppTest, column: str) -> Any:
    return next(frame.value for frame in app.dataframe if column in frame.value.columns)


def test_the_listing_is_narrowed_and_ordered_by_a_link(good: Path) -> None:
    app = open_page("files", good, partition="month=2", order="by path")
    assert table_with(app, "file")["file"].to_list() == ["load-2.parquet"]
    app = open_page("files", good, order="by path")
    assert table_with(app, "file")["file"].to_list() == [f"load-{m}.parquet" for m in (1, 2, 3)]


def test_a_link_to_a_partition_that_is_not_there_says_that_all_files_are_shown(good: Path) -> None:
    app = open_page("files", good, partition="month=9")
    assert "**month=9 is no partition of this version.** :gray[files of all partitions are shown; " in text(app)


def test_a_filter_does_not_change_how_partitions_are_named(tmp_path: Path) -> None:
    fields = [{"id": n, "name": name, "required": False, "type": "string"} for n, name in ((1, "month"), (2, "origin"))]
    history = IcebergHistory(tmp_path / "t", fields, [(1, "identity", "month")])
    history.append("a.parquet", [{"month": "2026-05", "origin": "JFK"}])
    history.partition_by((1, "identity", "month"), (2, "identity", "origin"))
    history.append("b.parquet", [{"month": "2026-09", "origin": "JFK"}])
    app = open_page("files", history.address, order="by path")
    assert table_with(app, "file")["partition"].to_list() == ["2026-05", "2026-09/JFK"]
    app = open_page("files", history.address, partition="month=2026-05")
    assert table_with(app, "file")["partition"].to_list() == ["2026-05"]


def test_a_partition_beyond_those_to_choose_from_is_shown(tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long", "day": "integer"}, partition_by=("day",))
    history.commit(*(add(f"f{day}.parquet", partition={"day": str(day)}) for day in range(1001)))
    app = open_page("files", history.address, partition="day=999")  # the last one by name
    assert table_with(app, "file")["file"].to_list() == ["f999.parquet"]


def test_the_first_line_says_that_the_layout_is_no_problem(good: Path) -> None:
    assert "**No problem found in the layout of 3 files, " in text(open_page("files", good))


def test_filters_drive_the_picture_and_the_figures(good: Path) -> None:
    app = open_page("files", good, path="load-2", sizes="<64 KiB")
    assert not app.exception
    assert table_with(app, "file")["file"].to_list() == ["load-2.parquet"]
    assert next(tile for tile in app.metric if tile.label == "Ideal file count").delta == "now 1"


def test_every_choice_of_the_listing_comes_from_the_link(good: Path) -> None:
    parameters = {
        "partition": "month=3",
        "order": "largest first",
        "sizes": "<64 KiB",
        "statistics-of": "range of carrier",
    }
    app = open_page("files", good, **parameters)
    assert not app.exception
    assert [app.selectbox(key=key).value for key in ("partition", "order", "sizes")] == list(parameters.values())[:3]
    assert app.selectbox(key="statistics-of").value == "carrier"
    assert table_with(app, "file")["minimum"].to_list() == ["AA"]


def test_a_size_that_no_file_has_any_more_shows_all_files(good: Path) -> None:
    app = open_page("files", good, sizes="8 GiB and so on")
    assert not app.exception
    assert len(table_with(app, "file")) == 3


def test_no_file_is_looked_into_before_somebody_asks(good: Path) -> None:
    app = open_page("files", good)
    assert "Tick a row above, or choose a file here" in text(app)
    assert not app.table


def test_a_file_is_looked_into_by_a_link(good: Path) -> None:
    app = open_page("files", good, file="month=2/load-2.parquet")
    assert not app.exception
    facts = dict(app.table[0].value.itertuples(index=False, name=None))
    assert facts["rows, by its footer"] == "20"
    assert facts["rows, by the log"] == "20"
    assert facts["added by"] == "v2"
    assert facts["row groups"] == "1"
    assert len(table_with(app, "delay")) == 20
    columns = table_with(app, "encodings")
    assert sorted(columns["column"]) == ["carrier", "delay"]
    assert columns["share"].sum() == pytest.approx(100)


def test_a_file_is_chosen_beside_the_table_and_let_go_again(good: Path) -> None:
    app = open_page("files", good)
    app.selectbox(key="pick_file").set_value("month=1/load-1.parquet").run()
    assert app.query_params["file"] == "month=1/load-1.parquet"
    assert app.table
    app.selectbox(key="pick_file").set_value("no file").run()
    assert "file" not in app.query_params
    assert not app.table


@pytest.mark.parametrize(
    ("path", "message"),
    [
        pytest.param("nobody.parquet", "is no file of this version of", id="not in the version"),
        pytest.param("month=4/load-4.parquet", "is no file of this version of", id="removed since"),
        pytest.param("/etc/passwd", "is no file of this version of", id="not of the table at all"),
    ],
)
def test_a_link_to_another_file_is_refused_and_the_page_goes_on(good: Path, path: str, message: str) -> None:
    app = open_page("files", good, file=path)
    assert not app.exception
    assert message in text(app)
    assert len(table_with(app, "file")) == 3


def test_a_file_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    app = open_page("files", tables.file_missing(tmp_path / "t"), file="month=1/load-1.parquet")
    assert not app.exception
    assert "is in the log and not in the store" in text(app)


def test_a_file_of_another_kind_is_said_to_be_one(tmp_path: Path) -> None:
    root = tables.good(tmp_path / "t")
    file = root / "month=1" / "load-1.parquet"
    file.write_bytes(b"Obj\x01" + bytes(file.stat().st_size - 4))
    app = open_page("files", root, file="month=1/load-1.parquet")
    assert not app.exception
    assert "is an Avro file, and only the layout of Parquet files can be read" in text(app)


def test_many_files_come_by_page_and_the_page_is_in_the_link(tmp_path: Path) -> None:
    table = LogWriter(tmp_path / "t", partitioned=False).create()
    add = table.add("load", flights(1), 1)["add"]
    table.commit("WRITE", *({"add": {**add, "path": f"part-{i:03}.parquet"}} for i in range(250)))
    app = open_page("files", tmp_path / "t", order="by path", files_page="3")
    assert not app.exception
    assert table_with(app, "file")["file"].to_list() == [f"part-{i:03}.parquet" for i in range(200, 250)]


@pytest.mark.parametrize(
    ("page", "words"), [("files", "1 file without"), ("partitions", "1 1 file"), ("compare", "1 column · matched")]
)
def test_one_is_counted_in_the_singular(page: str, words: str, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "t").create({"id": "long", "day": "integer"}, partition_by=("day",))
    history.commit(add("day=1/a.parquet", partition={"day": "1"}), metadata({"day": "integer"}, partition_by=("day",)))
    app = open_page(page, tmp_path / "t")
    assert not app.exception
    assert words in text(app)
