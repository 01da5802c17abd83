"""Bytes that nobody should have written: a designed error in bounded time and memory, and never fewer rows."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import random
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakeview.iceberg.manifests import avro_container
from lakeview.iceberg.manifests.avro import read_frame, read_joined, read_records
from lakeview.iceberg.manifests.avro_container import inflate, open_container
from lakeview.iceberg.manifests.entries import open_manifest, read_manifests
from lakeview.iceberg.manifests.manifest_lists import read_manifest_list
from lakeview.iceberg.opening import open_iceberg
from lakeview.model.errors import AccessDeniedError, CorruptTableError, LakeviewError, UnsupportedTableError
from tests.builders.iceberg import LIST_SCHEMA, IcebergHistory

FIELDS: list[dict[str, Any]] = [{"id": 1, "name": "id", "required": False, "type": "long"}]
SIMPLE: dict[str, Any] = {
    "type": "record", "name": "a",
    "fields": [{"name": "x", "field-id": 1, "type": "string"}, {"name": "y", "field-id": 2, "type": ["null", "long"]}],
}  # fmt: skip
RECORD = b"\x10abcdefgh\x02\x0a"


def zigzag(number: int) -> bytes:
    number, out = (number << 1) ^ (number >> 63), bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def container(
    *blocks: tuple[int, bytes], schema: Any = SIMPLE, codec: str = "null", marker: bytes = b"s" * 16
) -> bytes:
    """An Avro file of these blocks: how many records each claims, and its bytes as they lie in the file."""
    parts = [avro_container.MAGIC, zigzag(2)]
    for key, value in (("avro.schema", json.dumps(schema)), ("avro.codec", codec)):
        parts += [zigzag(len(key)), key.encode(), zigzag(len(value)), value.encode()]
    parts += [zigzag(0), b"s" * 16]
    for count, content in blocks:
        parts += [zigzag(count), zigzag(len(content)), content, marker]
    return b"".join(parts)


def read(data: bytes) -> list[dict[str, Any]]:
    return read_frame(open_container(data, "x.avro"), "x.avro").to_dicts()


def test_a_sound_file_is_read_by_both_readers() -> None:
    data = container((2, RECORD * 2), (1, RECORD))
    assert read(data) == [{"f1": "abcdefgh", "f2": 5}] * 3
    assert read_records(open_container(data, "x"), "x") == read(data)
    assert read(container()) == []


def test_bytes_behind_the_last_record_do_not_hang() -> None:
    assert len(read(container((2, RECORD * 2 + b"\0\0\0")))) == 2


def joined(*files: bytes) -> list[dict[str, Any]] | None:
    containers = read_joined([open_container(data, "x.avro") for data in files], "f1")
    return None if containers is None else containers.to_dicts()


def test_files_of_one_schema_are_decoded_together() -> None:
    alone = container((2, RECORD * 2), (1, RECORD))
    assert joined(alone, container(), container((1, b"\x04hi\x00"))) == [*read(alone), {"f1": "hi", "f2": None}]
    assert joined(container(), container()) == []


def test_a_file_that_holds_other_records_than_it_claims_is_not_read_with_others() -> None:
    sound = container((2, RECORD * 2))
    for lying in ((1, RECORD * 2), (3, RECORD * 2), (2, RECORD * 2 + b"\0"), (2, RECORD * 2 + b"\0\0"), (1, b"\x10")):
        for files in ((container(lying), sound), (sound, container(lying)), (container(lying), container(lying))):
            assert joined(*files) is None


def test_a_file_in_which_claims_make_up_for_each_other_is_not_read_with_others() -> None:
    assert joined(container((1, RECORD * 2)), container((3, RECORD * 2))) is None


def test_of_joined_files_the_broken_one_is_named(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    for i in range(3):
        history.append("a", [{"id": i}])
    path = history.root / "metadata" / "manifest-1002.avro"
    whole = path.read_bytes()
    block = whole.index(open_container(whole, "x").sync) + 16
    path.write_bytes(whole[:block] + zigzag(2) + whole[block + 1 :])
    with pytest.raises(CorruptTableError, match=r"manifest-1002\.avro"):
        open_iceberg(history.address).scan().collect()


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "deflate": lambda b: zlib.compress(b)[2:-4],
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": lambda b: bytes(pa.Codec("zstd").compress(b, asbytes=True)),
    "snappy": lambda b: bytes(pa.Codec("snappy").compress(b, asbytes=True)) + zlib.crc32(b).to_bytes(4, "big"),
}


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read(codec: str) -> None:
    assert len(read(container((3, CODECS[codec](RECORD * 3)), codec=codec))) == 3


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_before_it_is_whole(codec: str) -> None:
    packed = CODECS[codec](b"\0" * 4_000_000)
    with pytest.raises(ValueError, match=r"inflate"):
        inflate(packed, codec, 1_000_000)


@pytest.mark.parametrize("codec", CODECS)
def test_a_broken_block_is_refused(codec: str) -> None:
    whole = CODECS[codec](RECORD * 300)
    for broken in (whole[: len(whole) // 2], b"\xff" * 40, b""):
        with pytest.raises(CorruptTableError):
            read(container((300, broken), codec=codec))


def nested(depth: int) -> Any:
    schema: Any = "string"
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return {"type": "record", "name": "a", "fields": [{"name": "x", "type": schema}]}


CYCLE = {"type": "record", "name": "a", "fields": [{"name": "x", "type": ["null", "a"]}]}
NOTHINGS = {"type": "record", "name": "a", "fields": [{"name": "x", "type": {"type": "array", "items": "null"}}]}


def doubling(levels: int) -> dict[str, Any]:
    """Records of two of the record before: a name each, and twice as much to read with every level."""
    schema: dict[str, Any] = {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}
    for i in range(1, levels):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"r{i - 1}"}]
        schema = {"type": "record", "name": f"r{i}", "fields": fields}
    return schema


def column(type_: Any) -> dict[str, Any]:
    """A record of one field."""
    return {"type": "record", "name": "a", "fields": [{"name": "x", "type": type_}]}


BLANK = {"type": "fixed", "name": "blank", "size": 0}
LONG_DECIMAL = {"type": "fixed", "name": "d", "size": 20, "logicalType": "decimal", "precision": 3, "scale": 1}
EMPTY = {"type": "record", "name": "a", "fields": [{"name": "x", "type": "null"}]}

BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "another file": b"PAR1" + b"\0" * 40,
    "an end within the header": container((1, RECORD))[:40],
    "an end within a block": container((1, RECORD))[:-20],
    "an end within the marker": container((1, RECORD))[:-1],
    "another marker": container((1, RECORD), marker=b"t" * 16),
    "fewer records than claimed": container((3, RECORD * 2)),
    "records without end": container((2**60, RECORD)),
    "a negative number of records": container((-1, RECORD)),
    "a text longer than the block": container((1, b"\xfe\xff\xff\xff\x0f" + RECORD)),
    "a text that is none": container((1, b"\x10" + b"\xff" * 8 + b"\x00")),
    "a cyclic schema": container((1, b"\0"), schema=CYCLE),
    "lists of nothing": container((1, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\0"), schema=NOTHINGS),
    "records that double with each level": container((1, b"\0" * 64), schema=doubling(40)),
    "lists of values without bytes": container(
        (1, zigzag(2**40) + b"\0"), schema=column({"type": "array", "items": BLANK})
    ),
    "lists of records without bytes": container(
        (1, zigzag(2**40) + b"\0"), schema=column({"type": "array", "items": {**column(BLANK), "name": "b"}})
    ),
    "values of a negative size": container((1, b"\0"), schema=column({**BLANK, "size": -1})),
    "a decimal of more digits than any has": container((1, b"\x7f" * 20), schema=column(LONG_DECIMAL)),
    "records of nothing": container((2**40, b"\0"), schema=EMPTY),
    "a schema nested too deep": container((1, b"\0"), schema=nested(200)),
    "a schema that is no record": container((1, RECORD), schema="string"),
    "a type that is not there": container((1, b"\0"), schema={**CYCLE, "fields": [{"name": "x", "type": "nowhere"}]}),
    "a header of absurd length": avro_container.MAGIC + zigzag(2**62),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_is_no_whole_avro_file_is_corrupt(case: str) -> None:
    with pytest.raises(CorruptTableError) as caught:
        read(BROKEN[case])
    assert (caught.value.kind, caught.value.place) == ("corrupt-file", "x.avro")
    assert caught.value.fix


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 10**9}
DURATION = {"type": "fixed", "name": "d", "size": 12, "logicalType": "duration"}


def test_a_value_of_one_of_several_types_is_read() -> None:
    assert read(container((1, b"\0\x0a"), schema=column(["long", "string"]))) == [{"x": 5}]


@pytest.mark.parametrize(
    ("type_", "record", "value"),
    [
        pytest.param(DECIMAL, b"\x02\x05", b"\x05", id="a decimal of an absurd scale"),
        pytest.param({**DECIMAL, "scale": "1"}, b"\x02\x05", b"\x05", id="a decimal of a scale that is none"),
        pytest.param(DURATION, b"\xff" * 12, b"\xff" * 12, id="a duration"),
    ],
)
def test_bytes_with_a_meaning_that_no_column_has_stay_bytes(type_: Any, record: bytes, value: bytes) -> None:
    assert read(container((1, record), schema=column(type_))) == [{"x": value}]


def test_a_codec_nobody_knows_is_named() -> None:
    with pytest.raises(UnsupportedTableError, match="lz77"):
        read(container((1, RECORD), codec="lz77"))


def test_what_is_avro_and_no_manifest_is_corrupt() -> None:
    data = container((1, RECORD))
    with pytest.raises(CorruptTableError, match="it lacks the field"):
        read_manifest_list(data, "x.avro")
    with pytest.raises(CorruptTableError, match="it lacks the field"):
        read_manifests([open_manifest(data, "x.avro")], ())


@pytest.mark.parametrize(
    ("name", "field", "message"),
    [
        ("manifest-1002.avro", "status", "a status that is none"),
        ("snap-1002.avro", "sequence_number", "no sequence number"),
    ],
    ids=["an entry without status", "deletes without number"],
)
def test_deletes_that_nothing_places_are_corrupt(tmp_path: Path, name: str, field: str, message: str) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.delete_positions("d", {history.append("a", [{"id": 1}]): [0]})
    path = history.root / "metadata" / name
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows: list[Any] = list(reader)
    schema: Any = reader.writer_schema
    fields = [{**f, "type": ["null", f["type"]]} if f["name"] == field else f for f in schema["fields"]]
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema({**schema, "fields": fields}), [*rows[:-1], {**rows[-1], field: None}])
    path.write_bytes(out.getvalue())
    with pytest.raises(CorruptTableError, match=message):
        open_iceberg(history.address).scan().collect()


def test_fields_are_found_by_id_whatever_their_names(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1}])
    path = history.root / "metadata" / "snap-1001.avro"
    with path.open("rb") as file:
        rows = list(fastavro.reader(file))
    fields = [{**f, "name": f"odd_{i}"} for i, f in enumerate(LIST_SCHEMA["fields"]) if isinstance(f, dict)]
    names = [str(f["name"]) for f in LIST_SCHEMA["fields"] if isinstance(f, dict)]
    renamed = [{f"odd_{i}": row[name] for i, name in enumerate(names)} for row in rows if isinstance(row, dict)]
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema({**LIST_SCHEMA, "fields": fields}), renamed)
    path.write_bytes(out.getvalue())
    assert open_iceberg(history.address).scan().collect().rows() == [(1,)]


# -- a whole table


def grown(place: Path) -> IcebergHistory:
    history = IcebergHistory(place / "t", FIELDS, [(1, "bucket[4]", "b")], version=3)
    first = history.append("a", [{"id": i} for i in range(4)])
    history.delete_vectors("v", {first: [1]})
    return history


@pytest.mark.parametrize("name", ["v4.metadata.json", "snap-1002.avro", "manifest-1001.avro", "manifest-1002.avro"])
def test_flipped_bytes_anywhere_give_rows_or_a_designed_error(tmp_path: Path, name: str) -> None:
    history = grown(tmp_path)
    path = history.root / "metadata" / name
    if name.endswith("json"):
        path = max((history.root / "metadata").glob("v*.json"))
    whole, chance = path.read_bytes(), random.Random(name)
    for _ in range(20):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 2, 8))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(bytes(data[: chance.choice((len(data), len(data), chance.randrange(len(data))))]))
        with suppress(LakeviewError):
            table = open_iceberg(history.address)
            assert table.history().height <= 2
            table.versions()
            table.check()
            table.scan().collect()


@pytest.mark.parametrize(
    "path", ["s3://old/table/../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "http://localhost/x"]
)
def test_a_recorded_path_never_leads_out_of_the_table(tmp_path: Path, path: str) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1}])
    location = history.document["snapshots"][0]["manifest-list"]
    newest = max((history.root / "metadata").glob("v*.json"))
    newest.write_text(newest.read_text().replace(location, path))
    with pytest.raises((CorruptTableError, AccessDeniedError)):
        open_iceberg(history.address).snapshot().files  # noqa: B018  # reading it is the test


def test_a_link_out_of_the_table_is_not_followed(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1}])
    outside = tmp_path / "outside"
    (history.root / "data" / "a").rename(outside)
    (history.root / "data" / "a").symlink_to(outside)
    with pytest.raises(AccessDeniedError):
        open_iceberg(history.address).scan().collect()


def test_encryption_is_refused_by_name_and_the_rest_is_shown(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS, version=3)
    history.append("a", [{"id": 1}])
    newest = max((history.root / "metadata").glob("v*.json"))
    document = json.loads(newest.read_text())
    document["snapshots"][0]["key-id"] = "k1"
    newest.write_text(json.dumps(document))
    table = open_iceberg(history.address)
    assert table.snapshot().schema.names == ["id"]
    assert table.history().height == 1
    with pytest.raises(UnsupportedTableError, match="encrypted") as caught:
        table.scan().collect()
    assert caught.value.kind == "unsupported-encryption"


def test_a_data_file_of_an_unknown_format_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    data_file = history._file
    monkeypatch.setattr(history, "_file", lambda *args: {**data_file(*args), "file_format": "lance"})
    history.append("a", [{"id": 1}])
    table = open_iceberg(history.address)
    assert table.snapshot().files["format"].to_list() == ["LANCE"]
    with pytest.raises(UnsupportedTableError, match="LANCE") as caught:
        table.scan().collect()
    assert caught.value.kind == "unsupported-file-format"
    ((readable, reason),) = table.versions().select("readable", "reason").rows()
    assert not readable
    assert reason.endswith("/data/a is of the format LANCE, which is not read")


def test_a_snapshot_without_manifests_is_no_empty_table(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    history.append("a", [{"id": 1}])
    newest = max((history.root / "metadata").glob("v*.json"))
    document = json.loads(newest.read_text())
    del document["snapshots"][0]["manifest-list"]
    newest.write_text(json.dumps(document))
    with pytest.raises(CorruptTableError, match="neither a manifest list nor manifests"):
        open_iceberg(history.address).scan().collect()


def test_a_data_file_listed_twice_counts_once_and_is_reported(tmp_path: Path) -> None:
    history = IcebergHistory(tmp_path / "t", FIELDS)
    for name in "eadcbeadcb":
        history.append(name, [{"id": 1}])
    table = open_iceberg(history.address)
    assert table.snapshot().num_files == 5
    assert table.scan().collect().height == 5
    (twice,) = (finding for finding in table.check() if "listed twice" in finding.claim)
    assert [path[-1] for path in twice.evidence.split(", ")[:2]] == ["e", "a"]
