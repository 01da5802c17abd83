"""File lines of an answer to the actions of a log, whose paths are ids and not URLs, and to the URLs of these ids.

Each answer signs a URL of its own, with which anyone can read the file: it is no name, and it is never shown. The
protocol's name of a file is its id: "The same file is guaranteed to have the same id across multiple requests".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

import msgspec
import polars as pl
from msgspec.structs import replace

from lakeview.delta.sharing import (
    Action,
    AddCDCFile,
    AddFile,
    DeletionVectorDescriptor,
    RemoveFile,
    decode_path,
    encode_path,
    listing,
)
from lakeview.sharing.client.answers import Kind
from lakeview.sharing.client.refusals import broken_protocol
from lakeview.sharing.protocol.messages import FileLine

VECTORS = "/deletion-vectors/"
"""What stands before a deletion vector file's id in its path, so that it is no data file's."""


@dataclass(frozen=True, slots=True)
class SignedUrl:
    """Where a file can be read until `expires` (milliseconds since 1970; None where the server does not say).

    `size` in bytes, None where it is not known before.
    """

    url: str
    size: int | None = None
    expires: int | None = None

    def __repr__(self) -> str:  # with the URL anyone can read the file
        return f"SignedUrl(size={self.size}, expires={self.expires})"


@dataclass(frozen=True, slots=True)
class FileListing:
    """Actions in the order sent, each with its version (0 where lines have none), and where their files are."""

    actions: Sequence[tuple[int, Action]]
    urls: dict[str, SignedUrl]

    def frame(self, root: str) -> pl.DataFrame:
        """FILE_ACTIONS with `records`."""
        return listing(self.actions, root)


def read_file_lines(files: Sequence[tuple[Kind, FileLine]], until: int | None = None) -> FileListing:
    """The file lines of an answer. `until`: when the first of its URLs expires, for lines that do not say.

    SharingError for a file that is named but not given a URL, and for one that the answer lists twice: its rows would
    be read twice.
    """
    urls: dict[str, SignedUrl] = {}
    actions: dict[object, tuple[int, Action]] = {}
    for kind, file in files:
        action = _action(kind, file, urls, until)
        key = (file.id, file.version, action.add is None, action.remove is None)
        if key in actions:
            raise broken_protocol(f"file {file.id} is listed twice", "duplicate-file")
        actions[key] = (file.version or 0, action)
    return FileListing(list(actions.values()), urls)


def read_version_files(files: Sequence[tuple[Kind, FileLine]], until: int | None = None) -> FileListing:
    """The live files of a version, as `read_file_lines`. SharingError for a line of another action than `add` too."""
    live_files = read_file_lines(files, until)
    if any(action.add is None for _, action in live_files.actions):
        raise broken_protocol("a file of a version is listed as removed, or as a file of changes")
    return live_files


def _action(kind: Kind, file: FileLine, urls: dict[str, SignedUrl], until: int | None) -> Action:
    expires = until if file.expiration_timestamp is None else file.expiration_timestamp
    path = encode_path(file.id) if "%" in file.id else file.id  # paths of actions are decoded once
    single = file.delta_single_action
    if single is None:
        assert file.url is not None, "a line in parquet format has a URL, or it is refused when it is read"
        urls[file.id] = SignedUrl(file.url, file.size, expires)
        return _from_parquet(kind, file, path)
    record = single.add or single.remove or single.cdc
    if record is None:
        raise broken_protocol(f"file {file.id} has an action of no known kind")
    earlier = urls.get(file.id)  # a remove may have no size, and its add comes before
    size = earlier.size if earlier is not None and record.size is None else record.size
    urls[file.id] = SignedUrl(record.path, size, expires)
    if isinstance(record, AddCDCFile):
        return _cdc_action(replace(record, path=path))
    vector = None if record.deletion_vector is None else _vector_by_id(record.deletion_vector, file, urls, expires)
    action = replace(record, path=path, deletion_vector=vector)
    return Action(add=action) if isinstance(action, AddFile) else Action(remove=action)


def _from_parquet(kind: Kind, file: FileLine, path: str) -> Action:
    values, size = file.partition_values or {}, file.size or 0
    match kind:
        case "remove":
            return Action(remove=RemoveFile(path, file.timestamp, partition_values=values, size=size))
        case "cdf":
            return _cdc_action(AddCDCFile(path, values, size))
    return Action(add=AddFile(path, size, values, stats=file.stats))


def _cdc_action(action: AddCDCFile) -> Action:
    return Action(cdc=msgspec.Raw(msgspec.json.encode(action)))


def _vector_by_id(
    vector: DeletionVectorDescriptor, file: FileLine, urls: dict[str, SignedUrl], expires: int | None
) -> DeletionVectorDescriptor:
    """The descriptor of a vector, with an id in place of its URL; one that is inline stays as it is."""
    match vector.storage_type:
        case "i":
            return vector
        case "p":
            # ids of data files and of vectors are two name spaces
            path = VECTORS + quote(file.deletion_vector_file_id or file.id, safe="")
            urls[decode_path(path)] = SignedUrl(vector.path_or_inline_dv, None, expires)
            return replace(vector, path_or_inline_dv=path)
    raise broken_protocol(f"the deletion vector of file {file.id} has no URL")
