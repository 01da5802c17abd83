"""Actions to lines that wait for their URLs: everything else of a line is written once, for all who ask for it.

A row is the text before the URL, the text behind it, and where a deletion vector has a URL of its own the text between.
What differs from request to request (when URLs expire, which version was asked for) closes the line.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any
from urllib.parse import quote

import msgspec
import polars as pl

from lakeview.delta.sharing import LOG_FOLDER
from lakeview.model.addresses import is_absolute
from lakeview.model.schema import Schema, leaf_name
from lakeview.sharing.protocol.messages import ResponseFormat
from lakeview.sharing.server.refusals import unsupported_form

ROWS = pl.Schema(
    {"path": pl.String(), "vector": pl.String(), "head": pl.String(), "middle": pl.String(), "tail": pl.String()}
)
"""One row a line. `path`, `vector`: what to sign, decoded and relative to the table; `vector` is null without one, and
`middle` then. A line is head, URL, tail, or head, URL, middle, URL, tail; and then what closes it."""

Row = tuple[str, str | None, str, str | None, str]
Url = Callable[[Sequence[str]], list[str]]
"""Paths to their URLs."""

_HOLE = "\u0000hole\u0000"
_WRITTEN_HOLE = msgspec.json.encode(_HOLE).decode()


def text(value: object) -> str:
    """JSON."""
    return msgspec.json.encode(value).decode()


def file_id(path: str, scheme: str) -> str:
    """A file's id: the same in every answer, and telling nothing. `scheme`: parquet or delta."""
    data = path.encode(errors="surrogateescape")
    if scheme == ResponseFormat.DELTA:
        return hashlib.sha256(data).hexdigest()
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def servable(path: str) -> str:
    """A canonical path that lies in the table. 400 for one outside: what clones refer to is not theirs to give."""
    parts = path.split("/")
    if is_absolute(path) or ".." in parts or parts[0] == LOG_FOLDER or "\\" in path or "\0" in path:
        raise unsupported_form("Unsupported Delta Table Properties: the table refers to files that are not its data")
    return path


def parquet_row(kind: str, path: str, body: Mapping[str, Any], scheme: str) -> Row:
    """A line of the protocol's own format: `body` has partitionValues, size, and what else is known."""
    rest = text({"id": file_id(path, scheme), **body})
    return path, None, f'{{"{kind}":{{"url":"', None, f'",{rest[1:-1]}'


def delta_row(
    kind: str, path: str, action: Mapping[str, Any], vector: str | None, body: Mapping[str, Any], scheme: str
) -> Row:
    """A line that holds an action of the log. `vector`: the file of its deletion vector, None without one or inline;
    `body`: the other fields of the line."""
    fields: dict[str, Any] = {"id": file_id(path, scheme)}
    if action.get("deletionVector") is not None:
        descriptor = action["deletionVector"]
        fields["deletionVectorFileId"] = file_id(
            f"{descriptor['storageType']}{descriptor['pathOrInlineDv']}@{descriptor.get('offset')}", scheme
        )
        if vector is not None:
            action = {**action, "deletionVector": {**descriptor, "storageType": "p", "pathOrInlineDv": _HOLE}}
    inner = text({k: v for k, v in action.items() if k != "path"})
    start = f'{{"file":{{"deltaSingleAction":{{"{kind}":{{"path":"'
    tail = f"}},{text({**fields, **body})[1:-1]}"
    rest = f'",{inner[1:]}'
    if vector is None:
        return path, None, start, None, rest + tail
    before, after = rest.split(_WRITTEN_HOLE)
    return path, vector, start, f'{before}"', f'"{after}{tail}'


_ENCODER = msgspec.json.Encoder(decimal_format="number")


def stats_texts(statistics: pl.DataFrame, schema: Schema, records: pl.Series) -> list[str | None]:
    """A statistics document for each file, keys by logical names; null where nothing is known of it."""
    documents: list[dict[str, Any]] = [{} if n is None else {"numRecords": n} for n in records]
    for path, _ in schema.leaves():
        name = leaf_name(path)
        if name not in statistics.columns:
            continue
        column = statistics[name].struct
        for part, key in (("min", "minValues"), ("max", "maxValues"), ("null_count", "nullCount")):
            _put(documents, key, path, column.field(part).to_list())
    return [_ENCODER.encode(d).decode() if d else None for d in documents]


def _put(documents: Sequence[dict[str, Any]], key: str, path: tuple[str, ...], values: Sequence[Any]) -> None:
    for document, value in zip(documents, values, strict=True):
        plain = _plain(value)
        if plain is None:
            continue
        place = document.setdefault(key, {})
        for part in path[:-1]:
            place = place.setdefault(part, {})
        place[path[-1]] = plain


def _plain(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return None
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case str() | int() | float() | Decimal() | date():
            return value
    return None


def rows_frame(rows: Sequence[Row]) -> pl.DataFrame:
    """ROWS."""
    return pl.DataFrame(rows, schema=ROWS, orient="row")


def closing(expires: int, **more: object) -> str:
    """What closes each line of an answer: `expires` in seconds since 1970, `more` what else was asked for."""
    return f",{text({**more, 'expirationTimestamp': expires * 1000})[1:-1]}}}}}\n"


def encode_rows(rows: pl.DataFrame, url: Url, close: str) -> bytes:
    """The lines of ROWS."""
    if rows.is_empty():
        return b""
    urls = pl.Series("url", url(rows["path"].to_list()), dtype=pl.String)
    parts: list[pl.Expr | pl.Series] = [pl.col("head"), urls]
    vectors = rows["vector"]
    if vectors.null_count() < rows.height:
        vector_urls = iter(url(vectors.drop_nulls().to_list()))
        urls_of_rows = [None if v is None else next(vector_urls) for v in vectors]
        parts += [pl.col("middle").fill_null(""), pl.Series("signed", urls_of_rows, dtype=pl.String).fill_null("")]
    lines = rows.select(pl.concat_str(*parts, pl.col("tail"), pl.lit(close)).alias("line")).to_series()
    return "".join(lines.to_list()).encode(errors="surrogateescape")


def quote_path(path: str) -> str:
    """A path in a URL: each segment percent-encoded once."""
    return quote(path, safe="/=-_.~", errors="surrogateescape")


ROWS_A_CHUNK = 500
"""Rows that are packed together."""


@dataclass(frozen=True, slots=True)
class PackedRows:
    """ROWS of the files of one version, and which of them are selected. Immutable.

    `chunks` have ROWS_A_CHUNK rows each, the last one fewer; `numbers` are the selected rows, in ascending order.
    """

    chunks: Sequence[bytes]
    numbers: pl.Series

    @staticmethod
    def of(rows: Iterable[Row]) -> PackedRows:
        """Pack rows as they are made: one chunk of them is in memory uncompressed."""
        chunks: list[bytes] = []
        waiting: list[Row] = []
        height = 0
        for row in rows:
            waiting.append(row)
            height += 1
            if len(waiting) == ROWS_A_CHUNK:
                chunks.append(_pack(waiting))
                waiting.clear()
        if waiting:
            chunks.append(_pack(waiting))
        return PackedRows(chunks, pl.int_range(height, dtype=pl.UInt32, eager=True))

    @property
    def height(self) -> int:
        """How many rows are selected."""
        return self.numbers.len()

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return sum(map(len, self.chunks)) + 4 * self.height

    def filter(self, mask: pl.Series) -> PackedRows:
        """Of the selected rows, those for which a mask is true."""
        return PackedRows(self.chunks, self.numbers.filter(mask))

    def slice(self, start: int, length: int) -> PackedRows:
        """Of the selected rows, at most `length` from one on."""
        return PackedRows(self.chunks, self.numbers.slice(start, length))

    def frames(self) -> Iterator[pl.DataFrame]:
        """ROWS of the selected rows, one chunk unpacked at a time; chunks without a selected row stay packed."""
        at = 0
        while at < self.height:
            number = self.numbers[at] // ROWS_A_CHUNK
            first = number * ROWS_A_CHUNK
            end = int(self.numbers.search_sorted(first + ROWS_A_CHUNK))
            rows = pl.read_ipc_stream(BytesIO(self.chunks[number]))
            yield rows if end - at == rows.height else rows[self.numbers[at:end] - first]
            at = end


def _pack(rows: Sequence[Row]) -> bytes:
    buffer = BytesIO()
    rows_frame(rows).write_ipc_stream(buffer, compression="zstd")
    return buffer.getvalue()
