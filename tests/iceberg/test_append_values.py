"""What an append refuses by name before or while it writes, and values that only few tables hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lakeview.model.errors import UnsupportedTableError
from tests.iceberg.test_append import PLAIN, document_of, field, latest, made, opened

ID_AND_N = [field(1, "id", "long"), field(2, "n", "long")]


def changed(place: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The table's metadata, as another writer would have written it."""
    document = document_of(place)
    change(document)
    Path(latest(place)).write_text(json.dumps(document))


@pytest.mark.parametrize(("names", "ids", "words"), [
    (("a b", "a_x20b"), (1000, 1001), "a b and a_x20b, which have one name in manifests"),
    (("1st", "_1st"), (1000, 1001), "1st and _1st, which have one name in manifests"),
    (("p", "p"), (1000, 1001), "p and p, which have one name in manifests"),
    (("p", "q"), (1000, 1000), "p and q, which have the field id 1000"),
])  # fmt: skip
def test_parts_of_a_partition_that_manifests_confuse_are_refused(
    tmp_path: Path, names: tuple[str, str], ids: tuple[int, int], words: str
) -> None:
    place = made(tmp_path / "t", ID_AND_N)
    parts = [
        {"source-id": 1 + i, "field-id": ids[i], "name": names[i], "transform": "identity"} for i in range(2)
    ]  # fmt: skip
    changed(place, lambda document: document["partition-specs"][0].update(fields=parts))
    with pytest.raises(UnsupportedTableError, match=words) as caught:
        opened(place).append(pl.DataFrame({"id": [1], "n": [2]}))
    assert caught.value.kind == "ambiguous-partition"
    assert not list((place / "data").iterdir())


def test_a_default_is_written_although_another_column_differs_by_case_alone(tmp_path: Path) -> None:
    place = made(tmp_path / "t", [*PLAIN, field(3, "ID", "string", default="new")], version=3)
    opened(place).append(pl.DataFrame({"id": [1]}))
    opened(place).append(pl.DataFrame({"id": [2], "ID": ["given"]}))
    assert opened(place).scan().collect().sort("id")["ID"].to_list() == ["new", "given"]
