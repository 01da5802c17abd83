"""Which metadata file is current: hints good and bad, names of every writer, and ties."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lakeview as lv
from lakeview.iceberg.metadata.locate import Place, locate, place_of
from lakeview.iceberg.metadata.locations import Locations, canonical
from lakeview.iceberg.metadata.table_metadata import parse_metadata
from lakeview.iceberg.opening import open_iceberg
from lakeview.model.config import Config
from lakeview.model.errors import CorruptTableError, NotATableError
from lakeview.storage import open_storage
from tests.builders.iceberg_metadata import document, snapshot, text
from tests.builders.opening import open_iceberg_table


def folder(place: Path, *names: str, hint: str | None = None) -> Path:
    (place / "metadata").mkdir(parents=True)
    for number, name in enumerate(names):
        data = text(document(last_updated_ms=number))
        (place / "metadata" / name).write_bytes(gzip.compress(data) if "gz" in name else data)
    if hint is not None:
        (place / "metadata" / "version-hint.text").write_text(hint)
    return place


def current(place: Path) -> tuple[str, str]:
    where = place_of(str(place))
    location_found = locate(open_storage(where.root, config=Config()), where)
    return location_found.path.removeprefix("metadata/"), location_found.how


def test_a_table_s_own_folder_may_be_called_metadata(tmp_path: Path) -> None:
    place = folder(tmp_path / "metadata", V1)
    for address in (place, place / "metadata", place / "metadata" / V1):
        table = open_iceberg_table(address)
        assert table.storage.root == str(place)
    assert lv.find_tables(tmp_path)["address"].to_list() == [str(place)]


def test_a_table_whose_folder_alone_is_allowed_opens_though_it_is_called_metadata(tmp_path: Path) -> None:
    place = folder(tmp_path / "metadata", V1)
    assert open_iceberg(str(place), config=Config(roots=(str(place),))).storage.root == str(place)


def test_a_bucket_may_be_called_metadata() -> None:
    assert place_of("s3://metadata") == Place("s3://metadata")
    assert place_of("s3://lake/metadata") == Place("s3://lake")


V1, V2, V3 = (f"v{n}.metadata.json" for n in (1, 2, 3))
TIE_A, TIE_B = "00002-a.metadata.json", "00002-b.metadata.json"
N2, N10 = "00002-aa.metadata.json", "00010-bb.metadata.json"

CASES: dict[str, tuple[tuple[str, ...], str | None, tuple[str, str]]] = {
    "a number": ((V1, V2), "2", (V2, "version-hint")),
    "a number and a newline": ((V1, V2), "2\n", (V2, "version-hint")),
    "a stale number: the next ones are looked for": ((V1, V2, V3), "1", (V3, "version-hint")),
    "a stale number with its letter": ((V1, V2, V3), "v1", (V3, "version-hint")),
    "a number of a compressed file": (("v1.gz.metadata.json",), "1", ("v1.gz.metadata.json", "version-hint")),
    "a number, the suffix at the end": (("v1.metadata.json.gz",), "1", ("v1.metadata.json.gz", "version-hint")),
    "a number of a file with a uuid": ((N2, N10), "2", (N2, "version-hint")),
    "a file name": ((V1, V2), V1, (V1, "version-hint")),
    "a file name without its suffix": (("1f-b.metadata.json", V2), "1f-b", ("1f-b.metadata.json", "version-hint")),
    "a hint that dangles": ((V1, V2), "9", (V2, "listing")),
    "an empty hint": ((V1, V2), "", (V2, "listing")),
    "a hint of garbage": ((V1, V2), "\x00\x01?", (V2, "listing")),
    "no hint: the highest number": ((N10, N2), None, (N10, "listing")),
    "no hint: numbers are numbers": ((V1, V2, "v10.metadata.json"), None, ("v10.metadata.json", "listing")),
    "a tie: the one updated last": ((TIE_B, TIE_A), None, (TIE_A, "listing")),
    "names without numbers": (("x.metadata.json", "y.metadata.json"), None, ("y.metadata.json", "listing")),
    "compressed": (("00001-a.gz.metadata.json",), None, ("00001-a.gz.metadata.json", "listing")),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_current_file(tmp_path: Path, case: str) -> None:
    names, hint, expected = CASES[case]
    assert current(folder(tmp_path / "t", *names, hint=hint)) == expected


def test_a_table_is_opened_by_its_folder_its_metadata_folder_or_a_file(tmp_path: Path) -> None:
    table = folder(tmp_path / "t", V1, V2)
    assert current(table / "metadata") == (V2, "listing")
    assert current(table / "metadata" / V1) == (V1, "explicit")
    opened = open_iceberg(str(table / "metadata" / V1))
    assert opened.address == str(table / "metadata" / V1)
    assert not opened.refresh()


def test_a_folder_without_metadata_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    with pytest.raises(NotATableError):
        open_iceberg(str(tmp_path))
    with pytest.raises(NotATableError):
        open_iceberg(str(tmp_path / "metadata" / V1))


def test_heads_of_two_tables_are_told_apart(tmp_path: Path) -> None:
    table = folder(tmp_path / "t", "00001-a.metadata.json")
    other = text(document(table_uuid="another"))
    (table / "metadata" / "00001-b.metadata.json").write_bytes(other)
    with pytest.raises(CorruptTableError, match="several tables") as caught:
        open_iceberg(str(table))
    assert caught.value.kind == "several-tables"


def test_refresh_sees_a_newer_file_and_refuses_another_table(tmp_path: Path) -> None:
    place = folder(tmp_path / "t", V1)
    table = open_iceberg(str(place))
    assert not table.refresh()
    newer = document(current_snapshot_id=5, snapshots=[snapshot(5)])
    (place / "metadata" / V2).write_bytes(text(newer))
    assert table.refresh()
    assert table.latest_version == 5
    (place / "metadata" / V3).write_bytes(text(document(table_uuid="another")))
    with pytest.raises(CorruptTableError, match="another"):
        table.refresh()
    assert table.latest_version == 5


# -- recorded paths


def moved(location: str | None, *lists: str, relocate: dict[str, str] | None = None) -> Locations:
    document_found: dict[str, Any] = document(
        location=location, snapshots=[{**snapshot(n), "manifest-list": path} for n, path in enumerate(lists)]
    )
    return Locations("/here", parse_metadata(text(document_found), "v1.metadata.json"), relocate)


RESOLVED = {
    "below the location": (moved("s3://b/t"), "s3://b/t/data/a", "/here/data/a"),
    "another spelling of the same scheme": (moved("s3://b/t"), "s3a://b/t/data/a", "/here/data/a"),
    "a file URI of a bare location": (moved("/wh/t"), "file:///wh/t/data/a", "/here/data/a"),
    "one slash": (moved("file:/wh/t/"), "/wh/t/data/a", "/here/data/a"),
    "a location that is relative": (moved("./wh/t"), "wh/t/data/a", "/here/data/a"),
    "whole segments only": (moved("/t"), "/table2/a", "/table2/a"),
    "nothing is decoded": (moved("/t"), "/t/a%20b", "/here/a%20b"),
    "a rule of the user's, the longest first": (
        moved("/t", relocate={"/x": "/y", "/x/deep": "/z"}),
        "/x/deep/a",
        "/z/a",
    ),
    "a location that nothing begins with": (
        moved("s3://b/old", "s3://c/t/metadata/1.avro"),
        "s3://c/t/data/a",
        "/here/data/a",
    ),
    "a relative path": (moved(None), "data/a", "/here/data/a"),
    "somewhere else": (moved("/t"), "/elsewhere/a", "/elsewhere/a"),
}  # fmt: skip


@pytest.mark.parametrize("case", RESOLVED)
def test_a_recorded_path_is_found_where_it_lies_now(case: str) -> None:
    locations, path, expected = RESOLVED[case]
    assert locations.resolve(path) == expected
    assert locations.resolve_all(pl.Series([path, path + "//b"])).to_list() == [
        expected,
        locations.resolve(path + "//b"),
    ]


@pytest.mark.parametrize("path", ["/t/../etc/passwd", "../x", "/t/a\0b", "C:\\x"])
def test_a_path_that_no_file_has_is_refused(path: str) -> None:
    with pytest.raises(CorruptTableError) as caught:
        moved("/t").resolve(path)
    assert caught.value.kind == "unsafe-path"
    with pytest.raises(CorruptTableError):
        moved("/t").resolve_all(pl.Series(["/t/a", path]))


def test_one_spelling() -> None:
    assert canonical("file://localhost/a") == canonical("file:/a") == "/a"
    assert canonical("abfss://c@a.dfs/x") == "abfs://c@a.dfs/x"
