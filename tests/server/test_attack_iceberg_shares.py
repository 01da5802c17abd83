"""Iceberg tables asked for what was never published: branches, what was rolled back, what came before the share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.iceberg import IcebergHistory
from tests.builders.iceberg_branches import BranchedHistory
from tests.server.conftest import Api
from tests.server.shared_lake import TABLE
from tests.server.test_queries import share

ID: list[dict[str, Any]] = [{"id": 1, "name": "id", "type": "long", "required": False}]
PATH = TABLE.format("ice")


def ids(history: IcebergHistory) -> list[int]:
    return [snapshot["snapshot-id"] for snapshot in history.document["snapshots"]]


def branched(folder: Path) -> BranchedHistory:
    """Two snapshots on main, and between them in time one on a branch."""
    history = BranchedHistory(folder / "ice", ID)
    history.append("a.parquet", [{"id": 1}])
    history.branch("audit")
    with history.on("audit"):
        history.append("secret.parquet", [{"id": 666}])
    history.append("b.parquet", [{"id": 2}])
    return history


def test_what_lies_on_a_branch_is_not_shared_with_the_history(api: Api, tmp_path: Path) -> None:
    first, secret, last = ids(branched(tmp_path))
    share(api, tmp_path, "ice")
    assert len(api.files("ice", version=first)) == 1
    assert len(api.files("ice", version=last)) == 2
    message = f"version {secret} is none of the versions that led to the latest, {last}"
    assert api.refused("ice", version=secret) == (400, "INVALID_PARAMETER_VALUE", message)
    assert api.get(f"{PATH}/metadata", version=secret).status_code == 400


def test_a_moment_is_one_of_the_main_branch(api: Api, tmp_path: Path) -> None:
    first, _, last = ids(branched(tmp_path))
    share(api, tmp_path, "ice")
    after_secret = "2023-11-14T22:15:30Z"
    assert api.post(f"{PATH}/query", {"timestamp": after_secret}).headers["delta-table-version"] == str(first)
    answer = api.get(f"{PATH}/version", startingTimestamp="2023-11-14T22:14:30Z")
    assert answer.headers["delta-table-version"] == str(last)


def test_ids_that_do_not_ascend_are_versions_as_well(api: Api, tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "ice", ID)
    history.append("a.parquet", [{"id": 1}])
    history.first_id = 10
    history.append("b.parquet", [{"id": 2}])
    share(api, tmp_path, "ice")
    old, new = ids(history)
    assert old > new
    assert [len(api.files("ice", version=v)) for v in (old, new)] == [1, 2]


@pytest.mark.parametrize(
    ("start", "readable"),
    [(0, [True, True, True]), (1, [False, True, True]), (2, [False, False, True]), (None, [False, False, False])],
)
def test_a_history_is_shared_from_a_snapshot_on(
    api: Api, tmp_path: Path, start: int | None, readable: list[bool]
) -> None:
    history = IcebergHistory(tmp_path / "ice", ID)
    for number in range(3):
        history.first_id = 1000 - 100 * number  # ids descend
        history.append(f"{number}.parquet", [{"id": number}])
    line = ids(history)
    share(api, tmp_path, "ice", startVersion=12345 if start is None else line[start])
    verdicts = [api.post(f"{PATH}/query", {"version": v}).status_code == 200 for v in line]
    assert verdicts == readable
    assert len(api.files("ice")) == 3  # the latest needs no history


def test_a_column_with_an_initial_default_is_refused_by_name(api: Api, tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "ice", ID)
    history.append("a.parquet", [{"id": 1}])
    history.evolve([*ID, {"id": 2, "name": "x", "type": "long", "required": False, "initial-default": 42}])
    history.append("b.parquet", [{"id": 2, "x": 3}])
    share(api, tmp_path, "ice")
    message = "column x has an initial default, which Delta Sharing cannot describe"
    assert api.refused("ice") == (400, "UNSUPPORTED_OPERATION", message)


def test_a_name_mapping_is_refused_for_files_that_only_it_can_read(api: Api, tmp_path: Path) -> None:
    mapping = '[{"field-id": 1, "names": ["id", "old"]}]'
    history = IcebergHistory(tmp_path / "ice", ID, properties={"schema.name-mapping.default": mapping})
    history.append("a.parquet", [{"id": 1}], ids=False)
    share(api, tmp_path, "ice")
    message = "the table has a name mapping, by which its files may be read, and Delta Sharing has none"
    assert api.refused("ice") == (400, "UNSUPPORTED_OPERATION", message)


OWN_NAMES = {"field-id": 2, "names": ["l"], "fields": [{"field-id": 3, "names": ["element"]}]}


@pytest.mark.parametrize(
    ("key", "lists", "spec", "is_shared"),
    [
        pytest.param("id", [OWN_NAMES], (), True, id="the columns' own names"),
        pytest.param("id", [], (), False, id="no name of a column"),
        pytest.param("key", [OWN_NAMES], (), False, id="another name"),
        pytest.param("id", [OWN_NAMES], [(1, "identity", "id")], False, id="partition values that files may lack"),
        pytest.param("id", [OWN_NAMES, {"field-id": 2, "names": ["m"]}], (), False, id="one more name"),
    ],
)
def test_a_table_is_shared_whose_name_mapping_has_its_own_names(
    api: Api, tmp_path: Path, key: str, lists: list[Any], spec: Any, is_shared: bool
) -> None:
    """pyiceberg records one where it adds files: they are read by the names that recipients read them by."""
    type_ = {"type": "list", "element-id": 3, "element": "long", "element-required": False}
    fields = [*ID, {"id": 2, "name": "l", "required": False, "type": type_}]
    mapping = json.dumps([{"field-id": 1, "names": [key]}, *lists])
    history = IcebergHistory(tmp_path / "ice", fields, spec, properties={"schema.name-mapping.default": mapping})
    history.append("a.parquet", [{"id": 1}])
    share(api, tmp_path, "ice")
    answer = api.post(f"{PATH}/query", {})
    assert (answer.status_code, "name mapping" in answer.text) == ((200, False) if is_shared else (400, True))


def test_a_field_in_a_list_that_was_renamed_is_refused_by_name(api: Api, tmp_path: Path) -> None:
    def listed(name: str) -> list[dict[str, Any]]:
        element = {"type": "struct", "fields": [{"id": 4, "name": name, "required": False, "type": "long"}]}
        type_ = {"type": "list", "element-id": 3, "element": element, "element-required": False}
        return [*ID, {"id": 2, "name": "l", "required": False, "type": type_}]

    history = IcebergHistory(tmp_path / "ice", listed("before"))
    history.evolve(listed("after"))
    share(api, tmp_path, "ice")
    message = "column l.element.after had another name once, which Delta Sharing cannot describe"
    assert api.refused("ice") == (400, "UNSUPPORTED_OPERATION", message)


def test_properties_of_a_table_are_nobodys_business(api: Api, tmp_path: Path) -> None:
    history = BranchedHistory(tmp_path / "ice", ID)
    history.append("a.parquet", [{"id": 1}])
    history.record(properties={"secret.key": "zzz", "owner": "root"})
    share(api, tmp_path, "ice")
    answer = api.post(f"{PATH}/query", {})
    assert answer.status_code == 200
    assert "zzz" not in answer.text
    assert str(tmp_path) not in answer.text
