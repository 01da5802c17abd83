"""Streams of changes: the lines are those that the actions make, however the log is cut, and none is made ahead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakeview.delta import change_log
from lakeview.delta.log import table_log
from lakeview.delta.log.commits import Commit, parse_commit
from lakeview.sharing.protocol.messages import EndStreamAction, ResponseFormat
from lakeview.sharing.server import delta_source
from lakeview.sharing.server.answers import BrokenStreamError
from lakeview.sharing.server.answers import lines as sent_lines
from lakeview.sharing.server.delta_lines import action_row
from lakeview.sharing.server.delta_source import DeltaSource
from lakeview.sharing.server.source import ChangeRange, CommitRow
from tests.builders.actions import Action, add, cdc, info, metadata, protocol, remove
from tests.builders.feeds import FED, feed
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table
from tests.builders.vectors import deleting
from tests.server.conftest import Api, lines
from tests.server.shared_lake import TABLE
from tests.server.test_queries import share

DELTA = {"delta-sharing-capabilities": "responseformat=delta;readerfeatures=deletionvectors"}
MERGED_NOTHING = dict.fromkeys(("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"), "0")
Line = tuple[str, int, str]


def eventful(folder: Path) -> DeltaHistory:
    """Adds, removes, change files, compactions, a MERGE of nothing, empty commits; metaData and protocols between."""
    history = feed(DeltaHistory(folder))
    history.commit(*(add(f"a{i}", records=i) for i in range(9)))
    history.commit(metadata({"id": "long", "more": "long"}, properties=dict(FED)))
    history.commit(add("b0"), add("b1"), remove("a0"), remove("a1"))
    history.commit(info(operation="WRITE"))
    history.commit(
        *(add(f"c{i}") for i in range(5)), *(remove(f"a{i}") for i in range(2, 6)),
        *(cdc(add(f"_change_data/c{i}")) for i in range(4)),
    )  # fmt: skip
    history.commit(add("d", data_change=False), remove("b0", data_change=False))
    history.commit(protocol(1, 5), metadata({"id": "long"}, properties=dict(FED)), add("e0"))
    history.commit(*(add(f"m{i}") for i in range(6)), info(operation="MERGE", operationMetrics=MERGED_NOTHING))
    return history.commit(metadata({"id": "long", "last": "long"}, properties=dict(FED)))


def plainly(history: DeltaHistory, *, recorded: bool) -> list[Line]:
    """(kind, version, path) of what a range from version 0 contains, action by action."""
    lines_found: list[Line] = []
    for version, actions in history.actions.items():
        heads = [k for a in actions for k in a if k in ("protocol", "metaData") and version > 0]
        lines_found += [(kind, version, "") for kind in heads]
        lines_found += [(kind, version, body["path"]) for kind, body in _changes(actions, recorded)]
    return lines_found


def _changes(actions: list[Action], recorded: bool) -> Iterator[tuple[str, Any]]:
    pairs = [pair for action in actions for pair in action.items()]
    own = [pair for pair in pairs if pair[0] == "cdc"]
    if recorded and own:
        return iter(own)
    if recorded and any(body.get("operation") == "MERGE" for _, body in pairs):
        return iter(())
    return ((kind, body) for kind, body in pairs if kind in ("add", "remove") and body["dataChange"])


def read(lines: list[dict[str, Any]]) -> list[Line]:
    """(kind, version, path) of the lines of an answer in delta format, without those of its head."""
    result: list[Line] = []
    for line in lines[2:]:
        ((kind, body),) = line.items()
        if kind == "file":
            ((kind, action),) = body["deltaSingleAction"].items()
            result.append((kind, body["version"], action["path"].partition("?")[0].partition("/eventful-id/")[2]))
        elif kind in ("protocol", "metaData"):
            result.append((kind, body["version"], ""))
    return result


@pytest.fixture(params=["whole commits", "commits in pieces"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether commits of a few lines come in pieces, and batches are of three rows."""
    if request.param == "commits in pieces":
        monkeypatch.setattr(table_log, "_PIECE_BYTES", 300)
        monkeypatch.setattr(table_log, "_READ_BYTES", 700)
        monkeypatch.setattr(delta_source, "_ROWS", 3)
    return bool(request.param == "commits in pieces")


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("recorded", [True, False], ids=["changes", "startingVersion"])
def test_a_stream_has_the_lines_that_its_actions_make_whole_and_in_pages(
    api: Api, tmp_path: Path, recorded: bool
) -> None:
    history = eventful(tmp_path / "eventful")
    share(api, tmp_path, "eventful", id="eventful-id")

    def ask(**more: Any) -> list[dict[str, Any]]:
        path = TABLE.format("eventful")
        if not recorded:
            return lines(api.post(f"{path}/query", {"startingVersion": 0, **more}, DELTA))
        options = {"includeHistoricalMetadata": "true", "includeHistoricalProtocol": "true"}
        return lines(api.get(f"{path}/changes", None, DELTA, startingVersion=0, **options, **more))

    whole = ask()
    assert read(whole) == plainly(history, recorded=recorded)
    for most in (1, 2, 4, 9, 100):
        pages: list[dict[str, Any]] = []
        token: dict[str, str] | None = {}
        while token is not None:
            page = ask(maxFiles=most, **token)
            assert page[:2] == whole[:2]
            end = page.pop()["endStreamAction"]
            assert sum("file" in line for line in page) <= most
            pages += page[2:]
            token = {"pageToken": end["nextPageToken"]} if "nextPageToken" in end else None
        assert pages == whole[2:]


@pytest.mark.usefixtures("cut")
def test_a_vector_anywhere_in_a_large_commit_is_found_before_the_first_byte(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "late")
    features = ["deletionVectors", "changeDataFeed"]
    history.commit(
        protocol(3, 7, readerFeatures=features[:1], writerFeatures=features),
        metadata({"id": "long"}, properties=dict(FED)),
    )
    history.commit(*(add(f"f{i}") for i in range(9)), add("g", records=5, deletionVector=deleting(1)))
    history.commit(remove("g", data_change=False, deletionVector=deleting(1)))
    share(api, tmp_path, "late")
    assert "deletionvectors" in api.refused("late", startingVersion=0)[2]


@pytest.mark.usefixtures("cut")
def test_a_remove_without_partition_values_has_those_of_an_add_in_the_same_range(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "bare")
    history.commit(protocol(), metadata({"id": "long", "month": "integer"}, partition_by=("month",)))
    history.commit(*(add(f"a{i}", partition={"month": str(i)}) for i in range(4)))
    history.commit(remove("a1"))
    history.commit(add("packed", partition={"month": "7"}, data_change=False), remove("a2", data_change=False))
    history.commit(remove("packed"))
    share(api, tmp_path, "bare")
    values = [line["remove"]["partitionValues"] for line in api.query("bare", startingVersion=0) if "remove" in line]
    assert values == [{"month": "1"}, {"month": "7"}]


# -- nothing is made ahead of what is sent


def streaming(folder: Path) -> tuple[DeltaSource, ChangeRange]:
    """A table of 40 files in one commit and 40 in forty, and a range of all of them."""
    history = feed(DeltaHistory(folder)).commit(*(add(f"a{i}") for i in range(40)))
    for i in range(40):
        history.commit(add(f"b{i}"))
    table = open_delta_table(history.address)
    change_range = ChangeRange(0, 41, ResponseFormat.PARQUET, "parquet", True, True, True, CommitRow(0, 0))
    return DeltaSource(table), change_range


def counted_commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The version of each commit, or piece of one, that is decoded from now on."""
    decoded: list[int] = []

    def parse_and_note(data: bytes, version: int) -> Commit:
        decoded.append(version)
        return parse_commit(data, version)

    monkeypatch.setattr(change_log, "parse_commit", parse_and_note)
    return decoded


def test_rows_are_made_batch_by_batch_as_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    row = action_row

    def row_and_note(kind: str, action_kind: str, path: str, *more: Any) -> Any:
        calls.append(path)
        return row(kind, action_kind, path, *more)

    monkeypatch.setattr(delta_source, "action_row", row_and_note)
    monkeypatch.setattr(delta_source, "_ROWS", 8)
    source, change_range = streaming(tmp_path / "t")
    batches = source.changes(change_range)
    assert calls == []
    for count in range(1, 11):
        assert next(batches).rows.height == 8
        assert len(calls) == 8 * count
    assert next(batches, None) is None


def test_commits_are_decoded_as_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = counted_commits(monkeypatch)
    monkeypatch.setattr(table_log, "_PIECE_BYTES", 1000)
    monkeypatch.setattr(delta_source, "_ROWS", 4)
    source, change_range = streaming(tmp_path / "t")
    next(batches := source.changes(change_range))
    assert decoded == [0, 1]  # the first of several pieces of version 1
    assert sum(batch.rows.height for batch in batches) == 76
    assert decoded[-1] == 41
    assert decoded.count(1) > 4


def test_a_page_reads_no_commit_of_the_pages_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, change_range = streaming(tmp_path / "t")
    batch = next(source.changes(change_range))
    begin = batch.position(60)
    assert begin == CommitRow(22, 0)
    decoded = counted_commits(monkeypatch)
    later = ChangeRange(0, 41, ResponseFormat.PARQUET, "parquet", True, True, True, begin)
    rest = [path for page in source.changes(later) for path in page.rows["path"]]
    assert rest == batch.rows["path"].to_list()[60:]
    assert min(decoded) == 22


async def _at_once(function: Callable[[], Any]) -> Any:
    return function()


def test_the_next_chunk_is_made_when_the_one_before_it_was_taken() -> None:
    calls: list[int] = []

    def chunks() -> Iterator[bytes]:
        for number in range(5):
            calls.append(number)
            yield b"%d\n" % number

    async def slowly() -> None:
        answer = sent_lines(b"head\n", chunks(), None, _at_once, gzip=False)
        assert (await anext(answer), calls) == (b"head\n", [])
        for number in range(5):
            assert (await anext(answer), calls) == (b"%d\n" % number, list(range(number + 1)))

    asyncio.run(slowly())


def test_a_fault_after_the_first_byte_is_an_error_message_or_a_cut_connection(tmp_path: Path) -> None:
    history = feed(DeltaHistory(tmp_path / "t")).commit(*(add(f"a{i}") for i in range(600))).raw_commit(b"{broken")
    table = open_delta_table(history.address)
    change_range = ChangeRange(0, 2, ResponseFormat.PARQUET, "parquet", True, False, False, CommitRow(0, 0))

    async def answer(end: Callable[[], EndStreamAction] | None) -> list[bytes]:
        chunks = (str(batch.rows.height).encode() for batch in DeltaSource(table).changes(change_range))
        return [part async for part in sent_lines(b"head\n", chunks, end, _at_once, gzip=False)]

    head, first, last = asyncio.run(answer(EndStreamAction))
    assert (head, first) == (b"head\n", b"512")
    assert b'"errorMessage":"the table is damaged and cannot be read (corrupt-commit)"' in last
    with pytest.raises(BrokenStreamError):
        asyncio.run(answer(None))


def test_pretty_printed_commits_are_read_as_a_whole(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = DeltaHistory(tmp_path / "pretty").create({"id": "long"})
    body = ",\n".join(f'"k{i}": {i}' for i in range(100))
    actions = "\n".join(
        f'{{\n"add":\n{{"path": "{i}.parquet", "size": 1, "modificationTime": 1, "dataChange": true,\n'
        f'"partitionValues": {{}}, "tags": null,\n{body}\n}}\n}}'
        for i in range(3)
    )
    history.raw_commit(actions.encode())
    share(api, tmp_path, "pretty")
    monkeypatch.setattr(table_log, "_PIECE_BYTES", 300)
    assert len(api.query("pretty", startingVersion=0)[2:]) == 3


def test_an_early_fault_is_refused_before_the_first_byte(api: Api, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "early").create({"id": "long"})
    history.commit(*(add(f"{i}.parquet") for i in range(10)))
    history.raw_commit(b'{"add": nonsense\n')
    share(api, tmp_path, "early")
    assert api.refused("early", startingVersion=0)[0] == 400
