"""Commit files: bytes to actions, and back."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, TypeVar

import msgspec
import polars as pl

from lakeview.delta.log.actions import Action, AddFile, Metadata, Protocol, RemoveFile
from lakeview.delta.log.commit_info import CommitInfo, parse_commit_info
from lakeview.delta.log.paths import commit_name
from lakeview.model.arguments import text_of
from lakeview.model.errors import CorruptTableError

T = TypeVar("T")

Definition = tuple[Protocol | None, Metadata | None]
"""The last protocol and the last metaData action of a commit, or those of a checkpoint."""

_DECODER = msgspec.json.Decoder(Action)

_BETWEEN = b"}\n{"
"""Where one object ends and the next begins. Inside an object a comma or a bracket would follow the brace."""


class _Path(msgspec.Struct, frozen=True):
    path: str | None = None


_PATH = msgspec.json.Decoder(_Path)
RAW_LINES = msgspec.json.Decoder(dict[str, msgspec.Raw])
"""Lines of which only the kinds of actions are decoded."""
_JSON = json.JSONDecoder(parse_int=str)  # only to find where a value ends: int() refuses numbers of 4,300 digits
_BLANK = re.compile(r"[ \t\r\n]*")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, parsed."""

    version: int
    actions: tuple[Action, ...]

    @property
    def info(self) -> CommitInfo:
        """What the commit says about itself; empty when it says nothing."""
        for action in self.actions:
            raw = bytes(action.commit_info)
            if raw and raw != b"null":
                return parse_commit_info(raw)
        return CommitInfo()

    @property
    def definition(self) -> Definition:
        """Its last protocol and its last metaData action."""
        protocol: Protocol | None = None
        metadata: Metadata | None = None
        for action in [a for a in self.actions if a.protocol is not None or a.meta_data is not None]:
            protocol, metadata = action.protocol or protocol, action.meta_data or metadata
        return protocol, metadata

    @property
    def files(self) -> list[AddFile | RemoveFile]:
        """Its adds and removes, in the order recorded; of a line that holds both, the remove first."""
        return [file for a in self.actions for file in (a.remove, a.add) if file is not None]


def parse_commit(data: bytes, version: int, name: str | None = None) -> Commit:
    """The actions of a commit file. CorruptTableError says which line cannot be read, and why.

    `name`: of another file of actions than the version's commit. Each line is one JSON object. Blank lines and a
    byte-order mark are let pass, and so are commits that some hand or tool has pretty-printed: objects one after the
    other.
    """
    return Commit(version, tuple(parse_lines(_DECODER, data, name or commit_name(version))))


def readable(commits: Iterable[tuple[int, bytes]], reasons: dict[int, str] | None = None) -> Iterator[Commit]:
    """The commits of (version, bytes), without those that are corrupt; `reasons` gets why they are, by version."""
    for version, data in commits:
        try:
            yield parse_commit(data, version)
        except CorruptTableError as error:
            if reasons is not None:
                reasons[version] = error.message


def mentions(data: bytes, *kinds: str) -> bool:
    """Whether a commit may hold an action of one of these kinds; of its lines only the keys are decoded, and the bytes
    of one that this cannot be done of are searched: it is pretty-printed, or corrupt."""
    try:
        return not set(kinds).isdisjoint(chain.from_iterable(RAW_LINES.decode_lines(data)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return may_have_key(data, *kinds)


def may_have_key(data: bytes, *keys: str) -> bool:
    """Whether a commit may have one of these keys at any depth: its bytes are searched, nothing is decoded.

    Inside a JSON string the quotes would be escaped. A key may be spelled with escapes (`pro\\u0074ocol`): a commit
    with an escape that may stand for an ASCII letter may have any.
    """
    return any(f'"{key}"'.encode() in data for key in keys) or b"\\u00" in data


def parse_lines(decoder: msgspec.json.Decoder[T], data: bytes, name: str) -> list[T]:
    """The lines of a commit file, each by this decoder; errors and tolerance as `parse_commit`."""
    data = data.removeprefix(_BOM)
    try:
        return decoder.decode_lines(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        actions = _parse_stream(decoder, data)
        if actions is None:
            line, reason = _first_bad_line(decoder, data, error)
            raise CorruptTableError(
                f"commit {name} cannot be read at line {line}: {reason}",
                fix="restore the file from a backup or another copy of the table; versions before it still open",
                place=f"{name}:{line}",
                kind="corrupt-commit",
            ) from error
        return actions


def _parse_stream(decoder: msgspec.json.Decoder[T], data: bytes) -> list[T] | None:
    """Objects one after the other, with any white space between them; None if that is not what this is."""
    try:
        return [decoder.decode(part) for part in _parts(data)]
    except (ValueError, RecursionError):  # msgspec's and json's errors are ValueErrors
        return None


def _parts(data: bytes) -> Iterator[str]:
    """The JSON values that stand one after the other, each as it is written."""
    text, at = data.decode(), 0
    while (at := _BLANK.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # it matches nothing as well
        _, end = _JSON.raw_decode(text, at)
        yield text[at:end]
        at = end


def _first_bad_line(decoder: msgspec.json.Decoder[T], data: bytes, error: Exception) -> tuple[int, str]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
                return number, str(bad)
    return 1, str(error)


def raw_actions(data: bytes, version: int, name: str) -> list[tuple[str, str | None, str]]:
    """(kind, path or None, JSON text) of each action of a commit, in the order recorded; CorruptTableError as above."""
    parse_commit(data, version, name)
    # what a reader skips may be no UTF-8; it is shown all the same
    lines = parse_lines(RAW_LINES, data.decode(errors="replace").encode(), name)
    return [(kind, _path(body), bytes(body).decode()) for line in lines for kind, body in line.items()]


def info_fields(data: bytes, version: int) -> dict[str, Any]:
    """What a commit says of itself, every field of its commitInfo as it is recorded; empty where it says nothing.
    CorruptTableError as above."""
    lines = parse_lines(RAW_LINES, data, commit_name(version)) if mentions(data, "commitInfo") else []
    for raw in (bytes(line["commitInfo"]) for line in lines if "commitInfo" in line):
        fields = msgspec.json.decode(raw.decode(errors="replace"))
        if isinstance(fields, dict):
            return fields
    return {}


def _path(body: msgspec.Raw) -> str | None:
    try:
        return _PATH.decode(body).path
    except (msgspec.DecodeError, UnicodeDecodeError):  # an action without a path, or one whose path is no text
        return None


_ALWAYS: dict[str, dict[str, Any]] = {
    "metaData": {"partitionColumns": [], "configuration": {}},
    "add": {"partitionValues": {}},
}


def encode_actions(actions: Iterable[tuple[str, Any]]) -> bytes:
    """(kind, action) pairs to the bytes of a commit file: one JSON object a line, what is null left out."""
    lines = []
    for kind, action in actions:
        body = {
            k: without_nulls(v) if k == "deletionVector" else v
            for k, v in msgspec.to_builtins(action).items()
            if v is not None
        }
        lines.append(msgspec.json.encode({kind: {**_ALWAYS.get(kind, {}), **body}}) + b"\n")
    return b"".join(lines)


def json_text(value: Any) -> str:
    """A value as operationParameters of a commit record it."""
    return msgspec.json.encode(value).decode()


def predicates(where: str | pl.Expr | None) -> str:
    """A condition as commits record it: the text of a JSON list."""
    return json_text([] if where is None else [text_of(str(where), "where")])


def without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that are not null: the log leaves nulls out, and an inline vector has no offset, not one of null."""
    return {k: v for k, v in fields.items() if v is not None}


def only(kind: str, commits: Iterable[Commit]) -> list[tuple[int, Any]]:
    """(version, action) of every action of one kind, by the attribute's name in Action."""
    pairs = [(c.version, getattr(a, kind)) for c in commits for a in c.actions]
    return list(compress(pairs, (action is not None for _, action in pairs)))


def read_blocks(read: Callable[[int, int], bytes], size: int, most: int, *, newest_first: bool) -> Iterator[bytes]:
    """A file of `size` bytes in blocks of about `most` bytes, its first block first, or its last one: it is never in
    memory as a whole.

    `read` gives a range of the file: from a byte on, so many bytes.
    """
    rest, starts = b"", range(0, size, most)
    order = starts[::-1] if newest_first else starts
    for start in order:
        data = read(start, min(most, size - start))
        if newest_first:
            data = data + rest
            at = _begin(data.find(_BETWEEN)) if start else 0
            whole, rest = (data[at:], data[:at]) if at or not start else (b"", data)
        else:
            data = rest + data
            at = _begin(data.rfind(_BETWEEN)) if start != starts[-1] else len(data)
            whole, rest = data[:at], data[at:]
        if whole or start == order[-1]:  # of a file that is empty by now, one empty block
            yield whole


def cut_pieces(data: bytes, most: int, *, newest_first: bool) -> Iterator[bytes]:
    """Bytes of a commit in pieces of about `most` bytes, each copied when it is asked for.

    A file is cut only between two objects: a pretty-printed action stays whole, and so does a line that is longer than
    a piece.
    """
    ends = list(_ends(data, most))
    pairs = list(zip([0, *ends[:-1]], ends, strict=True))
    return (data[start:end] for start, end in (reversed(pairs) if newest_first else pairs))


def _ends(data: bytes, most: int) -> Iterator[int]:
    at = 0
    while len(data) - at > most:
        end = _begin(data.rfind(_BETWEEN, at, at + most))
        if end <= at:  # a line of more than a piece
            end = _begin(data.find(_BETWEEN, at + most)) or len(data)
        yield end
        at = end
    if at < len(data) or not data:
        yield len(data)


def _begin(place: int) -> int:
    """The place of the object that begins behind what was found; 0 if nothing was."""
    return place + 2 if place >= 0 else 0
