"""Messages of the sharing protocol, and what they are on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from lakeview.delta.log.actions import AddFile, Metadata, Protocol
from lakeview.delta.sharing import file_features
from lakeview.model.data_types import ArrayType, Field, PrimitiveType
from lakeview.model.schema import Schema
from lakeview.model.table_metadata import TableProtocol
from lakeview.sharing.protocol.messages import (
    Capabilities,
    EndStreamAction,
    FileFormat,
    FileLine,
    Line,
    MetadataLine,
    ProtocolLine,
    QueryRequest,
    encode_line,
    moment_text,
    parse_capabilities,
    parse_line,
    table_path,
)

LINES = {
    "the protocol": ("protocol", ProtocolLine(min_reader_version=1), b'{"protocol":{"minReaderVersion":1}}\n'),
    "metadata of an unpartitioned table says so": (
        "metaData",
        MetadataLine(id="t", format=FileFormat(), schema_string="{}", partition_columns=[]),
        b'{"metaData":{"id":"t","format":{"provider":"parquet"},"schemaString":"{}","partitionColumns":[]}}\n',
    ),
    "a file without statistics leaves them out": (
        "file",
        FileLine("f", url="https://store/f?sig=1", partition_values={}, size=573),
        b'{"file":{"id":"f","url":"https://store/f?sig=1","partitionValues":{},"size":573}}\n',
    ),
    "a changed file says its version and time": (
        "cdf",
        FileLine("f", url="u", partition_values={"day": ""}, size=1, version=2, timestamp=3, expiration_timestamp=4),
        (
            b'{"cdf":{"id":"f","url":"u","partitionValues":{"day":""},"size":1,"version":2,"timestamp":3,'
            b'"expirationTimestamp":4}}\n'
        ),
    ),
    "the end of a stream": (
        "endStreamAction",
        EndStreamAction(next_page_token="n"),
        b'{"endStreamAction":{"nextPageToken":"n"}}\n',
    ),
}


@pytest.mark.parametrize(("kind", "body", "wire"), LINES.values(), ids=LINES)
def test_a_line_is_one_object_with_one_key_and_nothing_that_is_not_said(kind: str, body: object, wire: bytes) -> None:
    assert encode_line(kind, body) == wire
    parsed = msgspec.to_builtins(parse_line(wire))
    assert list(parsed) == [kind]
    assert msgspec.convert(parsed[kind], type(body)) == body


def test_actions_of_the_delta_log_travel_whole() -> None:
    add = {"path": "https://store/f", "size": 3, "partitionValues": {}, "stats": "{}", "later": [1]}
    line = parse_line(encode_line("file", {"id": "f", "deltaSingleAction": {"add": add}}))
    assert line.file is not None
    assert line.file.delta_single_action is not None
    assert line.file.delta_single_action.add == AddFile("https://store/f", 3, {}, stats="{}")
    versions = b'"minReaderVersion":3,"minWriterVersion":7'
    head = parse_line(b'{"protocol":{"deltaProtocol":{%b,"readerFeatures":["deletionVectors"]}}}' % versions)
    assert head.protocol is not None
    assert head.protocol.delta_protocol == Protocol(3, 7, ["deletionVectors"])
    metadata = parse_line(b'{"metaData":{"version":4,"deltaMetadata":{"id":"t","partitionColumns":["day"]}}}')
    assert metadata.meta_data is not None
    assert metadata.meta_data.version == 4
    assert metadata.meta_data.delta_metadata == Metadata("t", partition_columns=["day"])


def test_lines_and_fields_of_later_protocols_are_skipped() -> None:
    assert parse_line(b'{"aggregate":{"sum":3}}') == Line()
    assert parse_line(b'{"protocol":{"minReaderVersion":1,"mood":"good"}}').protocol == ProtocolLine(1)


@pytest.mark.parametrize("wire", [b"", b"{", b"[]", b'{"file":{"url":"u"}}', b'{"file":{"id":"f","size":"big"}}'])
def test_what_is_no_line_is_told_from_an_unknown_one(wire: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        parse_line(wire)


def test_a_query_without_wishes_is_an_empty_object() -> None:
    assert msgspec.json.encode(QueryRequest()) == b"{}"
    assert msgspec.json.encode(QueryRequest(predicate_hints=["a = 1"], limit_hint=2, version=0)) == (
        b'{"predicateHints":["a = 1"],"limitHint":2,"version":0}'
    )


CAPABILITIES = {
    "nothing": (None, Capabilities()),
    "an empty header": ("", Capabilities()),
    "one format": ("responseformat=delta", Capabilities(("delta",))),
    "formats in the order wished, and features": (
        "responseformat=delta,parquet;readerfeatures=columnmapping,deletionvectors",
        Capabilities(("delta", "parquet"), frozenset({"columnmapping", "deletionvectors"})),
    ),
    "an end of the stream is asked for": ("includeendstreamaction=true", Capabilities(end_stream=True)),
    "an end of the stream is declined": ("includeendstreamaction=false", Capabilities(end_stream=False)),
}


@pytest.mark.parametrize(("header", "meaning"), CAPABILITIES.values(), ids=CAPABILITIES)
def test_capabilities_read_and_write_the_same(header: str | None, meaning: Capabilities) -> None:
    assert parse_capabilities(header) == meaning
    assert meaning.header == (header or "")


def test_capabilities_are_of_any_case_with_blanks_and_unknown_keys() -> None:
    text = " ResponseFormat = Delta , PARQUET ;; readerFeatures=deletionVectors,;asyncquery=true;flag;"
    assert parse_capabilities(text) == Capabilities(("delta", "parquet"), frozenset({"deletionvectors"}))


def test_names_are_quoted_as_one_segment_of_the_path() -> None:
    assert table_path("my share", "a/b", "Ü", "query") == "shares/my%20share/schemas/a%2Fb/tables/%C3%9C/query"


def test_moments_travel_in_utc() -> None:
    assert moment_text(datetime(2026, 7, 1, 12, tzinfo=UTC)) == "2026-07-01T12:00:00Z"
    east = timezone(timedelta(hours=2))
    assert moment_text(datetime(2026, 7, 1, 12, 0, 0, 5, tzinfo=east)) == "2026-07-01T10:00:00.000005Z"


@pytest.mark.parametrize("text", ["timestamp_ntz", "timestamp"])
def test_a_type_inside_a_list_needs_its_reader_feature(text: str) -> None:
    schema = Schema((Field("times", ArrayType(PrimitiveType(text))),))
    protocol = TableProtocol(3, 7, reader_features=("timestampNtz",))
    features = frozenset({"timestampntz"}) if text == "timestamp_ntz" else frozenset()
    assert file_features(protocol, {}, schema, vectors=False) == features
