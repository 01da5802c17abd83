"""Tables made to do harm: a designed error in bounded time, nothing read outside the allowed roots."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakeview as lv
from lakeview.delta.log import checkpoint_footer
from lakeview.delta.log.commits import parse_commit
from lakeview.delta.table import DeltaTable
from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, CorruptTableError, LakeviewError, UnsupportedTableError
from lakeview.storage import open_storage
from tests.builders.actions import add, info, metadata, protocol, remove, txn
from tests.builders.history import DeltaHistory, log_name
from tests.builders.parquet_footers import with_footer


def everything(address: str, config: Config | None = None) -> list[str]:
    """Ask a table for all it has; the messages of what it refuses. Anything but a LakeviewError goes through."""
    messages: list[str] = []

    def ask(question: Callable[[], Any]) -> Any:
        try:
            return question()
        except LakeviewError as error:
            assert len(str(error)) < 2_000, "an error is for people"  # noqa: PT017 (either answer is right)
            messages.append(error.kind)
            return None

    table = ask(lambda: lv.open_table(address, config=config))
    if table is None:
        return messages
    for question in (
        table.history, table.versions, table.schemas, table.lifetimes, table.files, table.statistics, table.refresh,
        lambda: table.commit(table.latest_version), lambda: table.commit(0),
        lambda: table.scan().collect(), lambda: table.plan("id = 1"),
        lambda: table.snapshot()._repr_html_(), lambda: table.snapshot().tombstones,
        lambda: table.snapshot().transactions, lambda: table.snapshot().domain_metadata,
    ):  # fmt: skip
        ask(question)
    return messages


OUTSIDE: dict[str, str] = {
    "climbs out": "../secret.parquet",
    "climbs out and comes back": "../../{name}/../secret.parquet",
    "climbs out, encoded": "%2e%2e/secret.parquet",
    "climbs out of a folder": "a/b/../../../secret.parquet",
    "is absolute": "{parent}/secret.parquet",
    "is a file URI": "file://{parent}/secret.parquet",
    "is a file URI with a host": "file://localhost{parent}/secret.parquet",
    "is a short file URI": "file:{parent}/secret.parquet",
    "is a file URI in capitals": "FILE://{parent}/secret.parquet",
    "is an encoded file URI": "file:%2F%2F{parent}/secret.parquet",
    "only begins like the table": "{root}-other/secret.parquet",
    "points into another store": "s3://bucket/secret.parquet",
    "points into memory": "memory://secret.parquet",
    "points at a web server": "http://169.254.169.254/latest",
    "points at a password file": "file:///etc/passwd",
    "holds a null character": "a\u0000b",
    "is absolute with a null character": "/etc/passwd\u0000",
    "is a chain of stores": "filecache::file:///etc/passwd",
    "goes through a link": "link/secret.parquet",
    "is a link": "linked.parquet",
    "begins with a home": "/~/secret.parquet",
}


@pytest.mark.parametrize("path", OUTSIDE.values(), ids=[f"a path that {words}" for words in OUTSIDE])
def test_a_recorded_path_does_not_lead_out_of_the_table(history: DeltaHistory, path: str) -> None:
    root = Path(history.address)
    elsewhere = DeltaHistory(root.parent)
    action = elsewhere.data("secret.parquet", {"id": [42], "city": ["secret"]})
    DeltaHistory(f"{root}-other").data("secret.parquet", {"id": [42]})
    recorded = path.format(parent=root.parent, root=root, name=root.name)
    history.create().commit({"add": {**action["add"], "path": recorded}})
    (root / "link").symlink_to(root.parent)
    (root / "linked.parquet").symlink_to(root.parent / "secret.parquet")
    table = lv.open_table(history.address)
    assert table.snapshot().num_files == 1, "the log may say so"
    with pytest.raises(LakeviewError) as caught:
        table.scan().collect()
    assert caught.value.kind in ("outside-roots", "data-file-missing", "invalid-request")
    if "null" not in path and "\0" not in path and "~" not in path and "::" not in path:
        assert isinstance(caught.value, AccessDeniedError)
    everything(history.address)


def test_a_path_into_an_allowed_root_is_opened(history: DeltaHistory) -> None:
    root = Path(history.address)
    action = DeltaHistory(root.parent / "shared").data("f.parquet", {"id": [42], "city": ["x"]})
    history.create().commit({"add": {**action["add"], "path": f"file://{root.parent}/shared/f.parquet"}})
    with pytest.raises(AccessDeniedError) as caught:
        lv.open_table(history.address).scan().collect()
    assert caught.value.kind == "outside-roots"
    assert caught.value.message == f"{root.parent}/shared/f.parquet lies outside the table and the allowed roots" or (
        "lies outside the table and the allowed roots" in caught.value.message
    )
    assert caught.value.fix == "add its folder to LAKEVIEW_ROOTS if you trust this table"
    config = Config(roots=(str(root), str(root.parent / "shared")))
    assert lv.open_table(history.address, config=config).scan().collect()["id"].to_list() == [42]


def test_a_table_outside_the_allowed_roots_is_not_opened(
    history: DeltaHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.create()
    monkeypatch.setenv("LAKEVIEW_ROOTS", str(tmp_path / "lake"))
    for ask in (lv.open_table, lv.find_tables):
        with pytest.raises(AccessDeniedError, match="lies outside the allowed roots") as caught:
            ask(history.address)
        assert caught.value.kind == "outside-roots"
    with pytest.raises(AccessDeniedError):
        lv.create_table(str(tmp_path / "new"), lv.Schema())
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake/table").symlink_to(history.address)
    with pytest.raises(AccessDeniedError):
        lv.open_table(str(tmp_path / "lake/table"))
    monkeypatch.setenv("LAKEVIEW_ROOTS", f"{tmp_path / 'lake'}, {history.address}")
    assert lv.open_table(history.address).latest_version == 0


def test_a_log_that_is_a_link_out_of_the_table_is_not_read(history: DeltaHistory, tmp_path: Path) -> None:
    history.create()
    (tmp_path / "decoy").mkdir()
    (tmp_path / "decoy/_delta_log").symlink_to(Path(history.address) / "_delta_log")
    with pytest.raises(AccessDeniedError, match="is a link that leaves the table"):
        lv.open_table(str(tmp_path / "decoy"))


def deep(levels: int, inner: Any = "long") -> str:
    """A schema nested this deep, as text."""
    opening = '{"type":"struct","fields":[{"name":"x","nullable":true,"metadata":{},"type":'
    return opening * levels + json.dumps(inner) + "}]}" * levels


SCHEMAS: dict[str, str] = {
    "nested 10,000 deep": deep(10_000),
    "nested 100 deep": deep(100),
    "lists nested 10,000 deep": '{"type":"struct","fields":[{"name":"x","type":'
    + '{"type":"array","containsNull":true,"elementType":' * 10_000 + '"long"' + "}" * 10_000 + "}]}",
    "no JSON": "{",
    "empty": "",
    "a number": "3",
    "a list": "[]",
    "null": "null",
    "a name": '"long"',
    "a struct without fields": '{"type":"struct"}',
    "fields that are no list": '{"type":"struct","fields":{}}',
    "a field without name": '{"type":"struct","fields":[{"type":"long"}]}',
    "a field with a number for a name": '{"type":"struct","fields":[{"name":1,"type":"long"}]}',
    "two columns of one name": '{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"a","type":"long"}]}',
    "a decimal of 99 digits": '{"type":"struct","fields":[{"name":"a","type":"decimal(99,2)"}]}',
    "a decimal of 10^6 digits": '{"type":"struct","fields":[{"name":"a","type":"decimal(%s,2)"}]}' % ("9" * 10**6),
    "a decimal of negative scale": '{"type":"struct","fields":[{"name":"a","type":"decimal(9,-2)"}]}',
    "a type of a million letters": '{"type":"struct","fields":[{"name":"a","type":"%s"}]}' % ("x" * 10**6),
    "a name of a million letters": '{"type":"struct","fields":[{"name":"%s","type":"?"}]}' % ("x" * 10**6),
    "a number of 10,000 digits": '{"type":"struct","fields":[{"name":"a","type":"long","metadata":{"x":%s}}]}'
    % ("9" * 10**4),
    "lone surrogates": '{"type":"struct","fields":[{"name":"\\ud800","type":"long"}]}',
    "a surrogate in a type": '{"type":"struct","fields":[{"name":"a","type":"\\udfff"}]}',
    "a surrogate in a comment": '{"type":"struct","fields":[{"name":"a","type":"long","metadata":'
    '{"comment":"\\ud800"}}]}',
    "a null character in a name": '{"type":"struct","fields":[{"name":"a\\u0000b","type":"long"}]}',
    "an empty name": '{"type":"struct","fields":[{"name":"","type":"long"}]}',
    "an empty struct": '{"type":"struct","fields":[{"name":"a","type":{"type":"struct","fields":[]}}]}',
    "a map without value": '{"type":"struct","fields":[{"name":"a","type":{"type":"map","keyType":"string"}}]}',
}  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=[f"a schema that is {words}" for words in SCHEMAS])
def test_a_hostile_schema_is_a_designed_error_or_shown(history: DeltaHistory, schema: str) -> None:
    begun = time.process_time()
    history.commit(protocol(), metadata(schema=schema)).commit(history.data("f", {"id": [1]}, stats={"numRecords": 1}))
    everything(history.address)
    history.checkpoint().without(0, 1)
    everything(history.address)
    assert time.process_time() - begun < 10


def test_a_schema_nested_too_deep_says_so(history: DeltaHistory) -> None:
    history.commit(protocol(), metadata(schema=deep(100)))
    with pytest.raises(CorruptTableError, match="is nested too deeply") as caught:
        lv.open_table(history.address).snapshot()
    assert (caught.value.kind, caught.value.place) == ("corrupt-schema", "metaData.schemaString")


@pytest.mark.slow
def test_two_thousand_columns_are_bearable(history: DeltaHistory) -> None:
    columns = {f"c{i}": "string" for i in range(2_000)}
    history.create(columns).commit(history.data("f", {"c1": ["x"]}, stats={"numRecords": 1}))
    begun = time.process_time()
    assert everything(history.address) == ["unknown-column"], "plan() asks for a column it has not"
    assert time.process_time() - begun < 6


ODD: dict[str, list[Any]] = {
    "deeply nested provenance": [{"commitInfo": {"x": json.loads("[" * 900 + "]" * 900)}}],
    "negative sizes": [add("f", size=-1), add("g", size=-(2**63))],
    "sizes that add up beyond 64 bits": [add("f", size=2**63 - 1), add("g", size=2**63 - 1)],
    "rows that add up beyond 64 bits": [add("f", records=2**63 - 1), add("g", records=2**63 - 1)],
    "a megabyte of partition value": [add("f", partition={"city": "x" * 10**6})],
    "a million letters of path": [add("x" * 10**6)],
    "an empty path": [add(""), remove("")],
    "a path that is the table": [add("."), add("..")],
    "a path of percent signs": [add("%%%"), add("%zz"), add("%"), add("%00"), add("%ff%fe")],
    "a path that is the log": [add("_delta_log/00000000000000000000.json")],
    "times beyond the calendar": [add("f", modificationTime=2**63 - 1), remove("g", at=-(2**63))],
    "a file added and removed at once": [add("f"), remove("f")],
    "the same file twice": [add("f", records=1), add("f", records=2)],
    "two protocols": [protocol(1, 1), protocol(1, 2)],
    "two schemas": [metadata({"id": "long"}), metadata({"id": "string"})],
    "unknown tags": [add("f", tags={"a": None, "b": "c"})],
    "a transaction of every name": [txn("", 1), txn("\u0000", 2), txn("x" * 10**5, 3)],
    "provenance that is a list": [{"commitInfo": [1, 2]}],
    "provenance that is text": [{"commitInfo": "hello"}],
    "provenance of odd fields": [
        info(operation=3, operationParameters=[1], operationMetrics="x", userName={"a": 1}, timestamp={"b": 2})
    ],
    "two provenances": [info(operation="A"), info(operation="B")],
    "a null provider": [{"metaData": {"id": None, "format": {}, "schemaString": None, "partitionColumns": None}}],
    "no actions": [],
    "empty actions": [{}, {"add": None}, {"remove": None, "add": None}],
}


@pytest.mark.parametrize("actions", ODD.values(), ids=list(ODD))
def test_odd_actions_are_a_designed_error_or_shown(history: DeltaHistory, actions: list[Any]) -> None:
    begun = time.process_time()
    history.create().commit(*actions).commit(add("later"))
    everything(history.address)
    if not any("commitInfo" in a for a in actions):
        history.checkpoint(actions=[protocol(), metadata(), *[a for a in actions if a and None not in a.values()]])
        history.without(0, 1, 2)
        everything(history.address)
    assert time.process_time() - begun < 10


TEXTS: dict[str, bytes] = {
    "provenance nested 100,000 deep": b'{"commitInfo":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}\n",
    "provenance with a number of 10,000 digits": b'{"commitInfo":{"timestamp":' + b"9" * 10_000 + b"}}\n",
    "provenance with a surrogate": b'{"commitInfo":{"operation":"\\ud800"}}\n',
    "an unknown action with a surrogate": b'{"wish":{"x":"\\udfff"}}\n',
    "an unknown action nested 100,000 deep": b'{"wish":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "an unknown action with a huge number": b'{"wish":' + b"9" * 10_000 + b"}\n",
    "a list of actions": b'[{"add":{"path":"x","size":1}}]\n',
    "null": b"null\n",
    "a number": b"3\n",
    "nothing": b"",
    "only blanks": b" \n \n",
    "null bytes": b"\x00" * 1000,
    "a size in exponent form": b'{"add":{"path":"x","size":1e3}}\n',
    "not a number": b'{"add":{"path":"x","size":NaN}}\n',
    "a key twice": b'{"add":{"path":"x","path":"y","size":1}}\n',
    "bytes after the end": b'{"add":{"path":"x","size":1}}\xff\xff',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=[f"a commit of {words}" for words in TEXTS])
def test_odd_commit_files_are_a_designed_error_or_shown(history: DeltaHistory, text: bytes) -> None:
    begun = time.process_time()
    history.create().raw_commit(text).commit(add("later"))
    everything(history.address)
    assert time.process_time() - begun < 10


def test_a_long_commit_with_one_bad_line_takes_no_longer_than_a_good_one(history: DeltaHistory) -> None:
    lines = b"".join(b'{"add":{"path":"part-%d","size":1,"dataChange":true}}\n' % i for i in range(60_000))
    history.create().raw_commit(lines + b"{")
    begun = time.process_time()
    with pytest.raises(CorruptTableError, match="line 60001"):
        lv.open_table(history.address).snapshot().files  # noqa: B018 (files load on first touch)
    history.write(log_name(1), lines)
    assert lv.open_table(history.address).commit(1).height == 60_000
    assert time.process_time() - begun < 8


def test_a_log_file_beyond_the_limit_is_refused(history: DeltaHistory) -> None:
    history.create().raw_commit(b" " * 5_000)
    with pytest.raises(lv.errors.UnsupportedTableError, match="more than the limit of 4,000") as caught:
        lv.open_table(history.address, config=Config(max_log_file_bytes=4_000)).history()
    assert caught.value.kind == "too-large"
    assert caught.value.fix == "raise LAKEVIEW_MAX_LOG_FILE_BYTES if this table is to be trusted"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["path", "size", "stats", "partitionValues", "tags", "schemaString", "configuration", "appId", "version",
          "minReaderVersion", "readerFeatures", "deletionVector", "format", "partitionColumns", "domain"]  # fmt: skip


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["add", "remove", "metaData", "protocol", "txn", "commitInfo", "domainMetadata", "wish"]),
            JSON | st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6),
            max_size=2,
        ),
        max_size=4,
    )
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@pytest.mark.slow
def test_whatever_stands_in_a_commit_is_a_designed_error_or_shown(
    tmp_path_factory: pytest.TempPathFactory, actions: list[Any]
) -> None:
    history = DeltaHistory(tmp_path_factory.mktemp("hostile")).create().commit(*actions)
    everything(history.address)


@pytest.mark.parametrize("path", ["d/" * 2_000_000 + "f", "f" * 9_000], ids=["a million folders", "a long name"])
def test_a_path_longer_than_any_file_has_is_no_file(history: DeltaHistory, path: str) -> None:
    history.create().commit(add(path))
    begun = time.process_time()
    with pytest.raises(LakeviewError) as caught:
        lv.open_table(history.address).scan().collect()
    assert caught.value.kind in ("data-file-missing", "path-too-long")
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("text", ["9" * 5_000, "-1", "x", ""], ids=["endless", "negative", "no number", "empty"])
def test_a_property_that_is_no_number_stops_nothing(history: DeltaHistory, text: str) -> None:
    names = ["inCommitTimestampEnablementVersion", "checkpointInterval", "dataSkippingNumIndexedCols"]
    properties: dict[str, str | None] = {f"delta.{name}": text for name in names}
    properties["delta.enableInCommitTimestamps"] = "true"
    features = ["inCommitTimestamp"]
    history.commit(info(inCommitTimestamp=5), protocol(1, 7, writerFeatures=features), metadata(properties=properties))
    assert everything(history.address) == []
    DeltaTable(open_storage(history.address)).append(pl.DataFrame({"id": [1], "city": ["a"]}))
    assert lv.open_table(history.address).check()


@pytest.mark.parametrize("sidecar", ["/etc/passwd", "s3://bucket/x", "a\0b"], ids=["outside", "elsewhere", "no name"])
def test_a_sidecar_that_may_not_be_opened_costs_no_other_answer(history: DeltaHistory, sidecar: str) -> None:
    features = ["v2Checkpoint"]
    state = [protocol(3, 7, readerFeatures=features, writerFeatures=features), metadata()]
    history.commit(*state).commit(add("f", records=1))
    actions = [{"checkpointMetadata": {"version": 1}}, *state, {"sidecar": {"path": sidecar, "sizeInBytes": 1}}]
    name = "checkpoint.11111111-2222-3333-4444-555555555555.json"
    history.write(log_name(1, name), "\n".join(map(json.dumps, actions)).encode()).without(0, 1)
    table = lv.open_table(history.address)
    with pytest.raises(AccessDeniedError) as caught:
        table.files()
    assert caught.value.fix
    assert table.versions()["readable"].to_list() == [False]
    assert table.lifetimes().height == table.history().height == 0
    assert any(f.severity == "broken" for f in table.check())


def test_a_preview_of_values_that_inflate_takes_little_memory(history: DeltaHistory) -> None:
    rows, buffer = 1_500, BytesIO()
    cities = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * (1 << 20)])
    pq.write_table(pa.table({"id": range(rows), "city": cities}), buffer, store_schema=False, compression="zstd")
    history.create().write("f", buffer.getvalue()).commit(add("f", size=buffer.tell(), records=rows))
    before = pa.default_memory_pool().max_memory()
    assert lv.open_table(history.address).scan().head(3).collect()["id"].to_list() == [0, 1, 2]
    assert pa.default_memory_pool().max_memory() - before < 800 << 20


def test_a_key_spelled_with_escapes_is_the_same_key(history: DeltaHistory) -> None:
    history.create().raw_commit(rb'{"t\u0078n": {"appId": "a", "version": 3}}')
    assert lv.open_table(history.address).snapshot().transactions["version"].to_list() == [3]
    history.raw_commit(rb'{"pro\u0074ocol": {"minReaderVersion": 9, "minWriterVersion": 9}}')
    with pytest.raises(UnsupportedTableError, match="needs Delta reader version 9"):
        lv.open_table(history.address).snapshot()


def test_of_a_line_with_two_actions_neither_is_lost(history: DeltaHistory) -> None:
    history.create().commit(add("old")).commit(add("new") | remove("old"))
    table = lv.open_table(history.address)
    assert table.files()["path"].to_list() == ["new"]
    assert table.history(limit=1).select("files_added", "files_removed").row(0) == (1, 1)
    assert table.changes_plan(2)["path"].to_list() == ["old", "new"]


def test_a_hundred_thousand_features_are_bearable(history: DeltaHistory) -> None:
    names = [f"f{i}" for i in range(100_000)]
    history.commit(protocol(3, 7, readerFeatures=names, writerFeatures=names), metadata())
    begun = time.process_time()
    assert everything(history.address).count("unsupported-reader-feature") > 5
    lv.open_table(history.address).check()
    assert time.process_time() - begun < 20


@given(st.binary(max_size=200))
def test_whatever_bytes_a_commit_has_are_read_or_refused(data: bytes) -> None:
    try:
        parse_commit(data, 7, "seven")
    except CorruptTableError as error:
        assert "commit seven cannot be read at line" in error.message  # noqa: PT017 (either is right)


def test_a_checkpoint_at_whose_footer_pyarrow_would_end_the_process_gives_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lv.create_table(str(tmp_path), {"id": pl.Int64})
    table.checkpoint()
    (path,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    path.write_bytes(with_footer(path.read_bytes(), b"\x25\x02\x18\x05appId", b"\x25\x00\x18\x05appId", 1))
    assert lv.open_table(str(tmp_path)).files().is_empty()  # of few rows no column chunk is looked at
    monkeypatch.setattr(checkpoint_footer, "FEW_ROWS", -1)
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    damaged = lv.open_table(str(tmp_path))
    with pytest.raises(CorruptTableError, match=r"cannot be read: column txn\.appId: a histogram has 3 levels"):
        damaged.files()
    assert damaged.snapshot().schema.names == ["id"]  # no column chunk is looked at


def test_a_checkpoint_with_a_column_whose_name_is_no_text_is_a_finding(tmp_path: Path) -> None:
    table = lv.create_table(str(tmp_path), {"id": pl.Int64})
    table.checkpoint()
    (path,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    path.write_bytes(with_footer(path.read_bytes(), b"\x05appId", b"\x05\xdbppId", 2))
    assert "checkpoint-unreadable" in {finding.id for finding in lv.open_table(str(tmp_path)).check()}
