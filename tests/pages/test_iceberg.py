"""The second format on every page: no page knows it, and none breaks on it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import lakeview as lv
from lakeview import views
from lakeview.app import cache
from lakeview.app.session import OpenTable, look_at
from tests.builders.iceberg import IcebergHistory
from tests.builders.iceberg_branches import BranchedHistory
from tests.pages.app import TABLE_PAGES, open_page, text

pytestmark = pytest.mark.app

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
    {"id": 3, "name": "note", "required": False, "type": "string", "doc": "what was said"},
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two partitions, a renamed column, a deletion vector and an equality delete."""
    history = IcebergHistory(
        tmp_path_factory.mktemp("iceberg") / "notes", FIELDS, [(2, "month", "day_month")], version=3
    )
    first = history.append("a", [{"id": i, "day": date(2024, 1, i + 1), "note": "x" * i} for i in range(9)])
    history.append("b", [{"id": 100, "day": date(2024, 2, 1), "note": None}])
    history.delete_vectors("v", {first: [0, 1]})
    history.evolve([*FIELDS[:2], {**FIELDS[2], "name": "remark"}])
    history.delete_equal("d", [history.fields["id"]], [{"id": 3}], partition={"day_month": 648})
    return history.address


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_every_page_draws_it(page: str, table: str) -> None:
    app = open_page(page, table)
    assert not app.exception
    assert "Iceberg" in text(app)


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_every_page_draws_a_table_without_a_snapshot(page: str, tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "empty", FIELDS)
    app = open_page(page, history.address)
    assert not app.exception
    assert "removed by cleanup" not in text(app), "there never was a commit"


def test_partitions_are_named_as_people_read_them(table: str) -> None:
    frame = table_with(open_page("partitions", table), "share")
    assert frame["partition"].to_list() == ["day_month=2024-01", "day_month=2024-02"]


def test_a_table_whose_manifests_are_gone_says_so_and_shows_its_commits(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1, "day": None, "note": None}])
    (history.root / "metadata" / "manifest-1001.avro").unlink()
    app = open_page("timeline", history.address)
    assert not app.exception
    assert "1 commit" in text(app)


def test_metadata_that_is_none_is_a_designed_error(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    (history.root / "metadata" / "v2.metadata.json").write_text(json.dumps({"format-version": 9}))
    app = open_page("overview", history.address)
    assert not app.exception
    assert "format version 9" in text(app)


def test_the_overview_shows_a_description_once(tmp_path: Path) -> None:
    properties = {"comment": "what was said", "owner": "li"}
    history = IcebergHistory(tmp_path / "t", FIELDS, properties=properties)
    history.append("a", [{"id": 1}])
    app = open_page("overview", history.address)
    (facts,) = [dict(zip(*(table.value[name] for name in table.value), strict=True)) for table in app.table]
    assert facts["description"] == "what was said"
    assert "comment" not in facts
    assert facts["owner"] == "li"


FIRST_ID = 2_749_945_925_262_620_000


@pytest.fixture(scope="module")
def branched(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ids of 64 bits; a branch and a tag; two specs; a sort order; statistics; a column nothing is written with yet."""
    history = BranchedHistory(tmp_path_factory.mktemp("branched") / "notes", FIELDS, [(2, "month", "day_month")])
    history.first_id = FIRST_ID
    first = history.append("a", [{"id": i, "day": date(2024, 1, i + 1), "note": "x"} for i in range(9)])
    history.tag("january", max_ref_age_ms=864_000_000_000).branch("audit", min_snapshots_to_keep=2)
    with history.on("audit"):
        history.append("b", [{"id": 50, "day": date(2024, 3, 1), "note": "?"}])
    history.partition_by((2, "month", "day_month"), (1, "bucket[4]", "id_bucket"))
    history.append("c", [{"id": 100, "day": date(2024, 2, 1), "note": None}])
    history.partition_by((2, "month", "day_month"))
    history.delete_positions("d", {first: [0]}, partition={"day_month": 648})
    sorted_by = {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
    blob = {"type": "apache-datasketches-theta-v1", "fields": [1], "properties": {"ndv": "10"}}
    statistics_file = {
        "snapshot-id": FIRST_ID + 3,
        "statistics-path": f"{history.location}/s.puffin",
        "blob-metadata": [blob],
    }
    history.record(
        sort_orders=[{"order-id": 0, "fields": []}, {"order-id": 1, "fields": [sorted_by]}],
        default_sort_order_id=1, statistics=[statistics_file],
    )  # fmt: skip
    history.evolve([*FIELDS, {"id": 4, "name": "coming", "required": False, "type": "long"}])
    return history.address


def table_with(app: AppTest, column: str) -> Any:
    return next(frame.value for frame in app.dataframe if column in frame.value.columns)


def test_branches_and_tags_are_on_the_timeline(branched: str) -> None:
    app = open_page("timeline", branched, tab="Branches and tags")
    assert not app.exception
    assert "**Branches and tags**" in text(app)
    rows = table_with(app, "ahead")
    assert rows["name"].to_list() == ["main", "audit", "january"]
    assert rows["ahead"].to_list() == [0, 1, 0]
    assert rows["keeps"].to_list()[1:] == ["at least 2 versions", "goes after 10,000 days"]
    log = table_with(app, "why")
    assert log["why"].to_list() == ["child of the one before", "child of the one before", "the first"]


def test_columns_that_say_nothing_leave_their_room_to_names(branched: str, table: str) -> None:
    changes = table_with(open_page("schema", branched, tab="Since when"), "before")
    assert "operation" not in changes.columns
    branches = open_page("timeline", table, tab="Branches and tags")
    assert not [frame for frame in branches.dataframe if "keeps" in frame.value.columns]


def test_a_branch_in_the_link_is_the_one_that_is_told(branched: str) -> None:
    app = open_page("timeline", branched, ref="audit")
    assert not app.exception
    assert app.query_params["ref"] == "audit"
    assert app.query_params["version"] == str(FIRST_ID + 2)
    marks = [operation.split()[0] for operation in table_with(app, "committed")["operation"]]
    assert marks == ["\N{BLACK DOWN-POINTING TRIANGLE}"] * 2 + ["\N{BLACK CIRCLE}"] * 2


def test_a_branch_is_chosen_beside_the_version(branched: str) -> None:
    app = open_page("overview", branched)
    app.selectbox(key="pick_ref").set_value("audit").run()
    assert not app.exception
    assert app.query_params["version"] == str(FIRST_ID + 2)
    app.selectbox(key="pick_ref").set_value("main").run()
    assert "ref" not in app.query_params
    assert app.query_params["version"] == str(FIRST_ID + 4)


def test_only_versions_of_the_branch_are_offered_and_the_one_shown(branched: str) -> None:
    def offered(**parameters: str) -> list[str]:
        labels = open_page("schema", branched, **parameters).selectbox(key="pick_version").options
        return [label.partition(" ")[0] for label in labels]

    assert offered() == ["s4", "s3", "s1"]
    assert offered(ref="audit") == ["s2", "s1"]
    assert offered(version="s2") == ["s2", "s4", "s3", "s1"]


def test_a_branch_that_is_not_there_is_said_with_a_way_out(branched: str) -> None:
    app = open_page("overview", branched, ref="gone")
    assert not app.exception
    assert "no branch or tag gone" in text(app)


def test_a_version_is_linked_to_by_its_name_and_is_behind_those_of_its_branch_alone(branched: str) -> None:
    app = open_page("timeline", branched, version="s1", commit="s3")
    assert app.query_params["version"] == str(FIRST_ID + 1)
    assert "**You are looking at s1**, 2 versions behind" in text(app)
    assert app.selectbox(key="pick_commit").value == str(FIRST_ID + 3)


def test_a_name_that_no_version_has_is_said_to_be_none(branched: str) -> None:
    assert "link asks for version 's99', which the table does not have" in text(
        open_page("files", branched, version="s99")
    )


def test_a_version_of_another_branch_says_where_it_lies(branched: str) -> None:
    assert "on audit" in text(open_page("files", branched, version=str(FIRST_ID + 2)))


def test_readability_is_that_of_the_line_told(branched: str) -> None:
    main, audit = (look_at(branched, ref=ref).look.readability() for ref in (None, "audit"))
    assert main["version"].to_list() == [FIRST_ID + n for n in (1, 3, 4)]
    assert audit["version"].to_list() == [FIRST_ID + n for n in (1, 2)]


def test_a_cleanup_is_of_the_whole_table_whichever_branch_is_looked_at(tmp_path: Path) -> None:
    history = BranchedHistory(tmp_path / "t", FIELDS)
    first = history.append("a", [{"id": 1, "day": None, "note": "x"}])
    history.branch("audit")
    with history.on("audit"):
        history.append("much", [{"id": i, "day": None, "note": f"{i} of very many"} for i in range(5_000)])
    history.remove(first)
    maintenance = [upkeep_of(look_at(history.address, ref=ref)) for ref in (None, "audit")]
    assert maintenance[0] == maintenance[1]
    assert maintenance[0][0].startswith(
        "The next cleanup ends v1001: versions of all 2 branches and tags are retained for 5 days"
    )
    assert look_at(history.address, ref="audit").look.readability()["state"].to_list() == ["at risk", "kept"]
    retained = [m.value for m in open_page("overview", history.address, ref="audit").metric if "Retained" in m.label]
    # of main, which is empty now, and of the file that the branch alone has
    size = views.units.format_bytes(sum((tmp_path / "t/data" / name).stat().st_size for name in ("a", "much")))
    assert retained == [f"\N{GREATER-THAN OR EQUAL TO} {size}"]


def upkeep_of(now: OpenTable) -> list[str]:
    return [f"{f.claim}: {f.evidence}" for f in now.look.findings() if "cleanup" in f.claim]


def test_the_course_of_clustering_is_that_of_the_line_told(branched: str) -> None:
    main = table_with(open_page("pruning", branched), "committed")
    audit = table_with(open_page("pruning", branched, ref="audit"), "committed")
    assert [main["files"].to_list(), audit["files"].to_list()] == [[2, 2, 1], [2, 1]]


def test_the_schema_page_follows_the_branch_told(tmp_path: Path) -> None:
    history = BranchedHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1, "day": None, "note": None}])
    history.branch("audit")
    history.evolve([*FIELDS, {"id": 9, "name": "more", "required": False, "type": "long"}])
    history.append("b", [{"id": 1, "day": None, "note": None}])
    assert "more" in table_with(open_page("schema", history.address, tab="Since when"), "since")["column"].to_list()
    older = open_page("schema", history.address, tab="Since when", ref="audit")
    assert "more" not in table_with(older, "since")["column"].to_list()


def test_a_column_renamed_since_the_newest_version_is_filtered_read_and_compared_by_its_name(tmp_path: Path) -> None:
    history = BranchedHistory(tmp_path / "t", FIELDS)
    for name, number, note in (("a", 1, "x"), ("b", 2, "y")):
        history.append(name, [{"id": number, "day": None, "note": note}])
    history.evolve([{**field, "name": "remark"} if field["name"] == "note" else field for field in FIELDS])
    app = open_page("pruning", history.address, where="remark = 'x'")
    assert "there is no column" not in text(app).lower()
    rows = table_with(app, "most").set_index("column")
    assert rows.loc["remark", "ranges"] == 100
    app = open_page("data", history.address, where="remark = 'x'")
    app.button(key="read").click().run()
    assert "remark" in app.dataframe[0].value.columns
    newest, first = lv.open_table(history.address).history()["version"]
    for version, base in ((newest, first), (first, newest)):
        assert "1 column renamed" in sentence(history.address, version, base)


def test_a_version_has_its_own_columns_again_once_something_newer_is_written_with_the_declared_ones(
    tmp_path: Path,
) -> None:
    history = BranchedHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1, "day": None, "note": "x"}])
    (first,) = lv.open_table(history.address).history()["version"]
    history.evolve([{**field, "name": "remark"} if field["name"] == "note" else field for field in FIELDS])
    assert table_with(open_page("pruning", history.address), "most").set_index("column").loc["remark", "ranges"] == 100
    history.append("b", [{"id": 2, "day": None, "note": "y"}])
    cache.latest.clear()
    rows = table_with(open_page("pruning", history.address), "most").set_index("column")
    assert rows.loc["remark", "ranges"] == 100
    older = table_with(open_page("pruning", history.address, version=str(first)), "most").set_index("column")
    assert ("remark" in older.index, older.loc["note", "ranges"]) == (False, 100)


def sentence(address: str, version: int, base: int) -> str:
    """What Compare says of two versions."""
    return str(open_page("compare", address, version=str(version), base=str(base)).code[0].value)


def test_the_newest_version_has_the_columns_that_are_declared_and_older_ones_their_own(branched: str) -> None:
    names = table_with(open_page("schema", branched), "minimum")["name"].to_list()
    assert names[-1] == "coming"
    older = open_page("schema", branched, version=str(FIRST_ID + 1))
    assert table_with(older, "minimum")["name"].to_list() == ["id", "day", "note"]


def test_estimates_of_distinct_values_and_the_sort_order_are_on_the_schema_page(branched: str) -> None:
    app = open_page("schema", branched)
    assert table_with(app, "minimum")["distinct"].to_list()[0] == 10
    assert table_with(app, "order")["text"].to_list() == ["id asc nulls first"]


def test_the_ways_it_was_partitioned_are_on_the_partitions_page(branched: str) -> None:
    rows = table_with(open_page("partitions", branched), "spec")
    assert rows["text"].to_list() == ["month of day", "month of day, id into 4 buckets", "month of day"]
    assert rows["files"].to_list() == [1, 1, 0]
    assert rows["state"].to_list() == ["", "", "new files"]


def test_manifests_and_delete_files_stand_apart_on_the_files_page(branched: str) -> None:
    app = open_page("files", branched)
    assert table_with(app, "overlaps")["content"].to_list() == ["data", "data", "deletes"]
    assert table_with(app, "deletes")["kind"].to_list() == ["position deletes"]


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_long_ids_are_whole_only_where_one_version_is_told_about(page: str, branched: str) -> None:
    app = open_page(page, branched)
    assert not app.exception
    assert f"v{FIRST_ID}"[:12] not in text(app)
    for frame in app.dataframe:
        for name, kind in frame.value.dtypes.items():
            assert kind != "int64" or frame.value[name].abs().max() < 2**53, name


def test_the_rows_beside_a_column_of_an_unknown_type_are_shown(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", [*FIELDS, {"id": 9, "name": "x", "required": False, "type": "wish(4)"}])
    history.append("a", [{"id": 1, "day": None, "note": None}], leave_out=["x"])
    app = open_page("data", history.address)
    app.button(key="read").click().run()
    assert not app.exception
    assert "without x, of a type that cannot be read" in text(app)
