"""Live files of a table to copies of them below another root, and to the add actions that name the copies."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import msgspec

from lakeview.delta.data.deletion_vectors import DeletionVector, z85_encoded
from lakeview.delta.log.actions import AddFile
from lakeview.delta.log.paths import encode_path
from lakeview.delta.write.create import check_no_table, marker_name
from lakeview.delta.write.file_changes import add_of
from lakeview.delta.write.target import Progress, with_progress
from lakeview.model.addresses import is_absolute
from lakeview.model.errors import CommitConflictError, DataFileMissingError, UnsupportedTableError
from lakeview.storage import Storage

_FILES_AHEAD = 4
"""Copied at once between remote stores."""


class FileCopy(NamedTuple):
    """A file of the source, its path in the target, and its bytes, 0 where the log does not say."""

    source: str
    target: str
    size: int


CopyFiles: TypeAlias = Callable[[Sequence[FileCopy], Storage, Storage], None]
"""Copies files from one store to another, and returns when all are there."""


def copies_of(rows: Iterable[Mapping[str, Any]], clone: uuid.UUID) -> tuple[list[AddFile], list[FileCopy]]:
    """The adds of a deep clone, and the files to copy for them; `rows`: FILE_ACTIONS with LIVE_COLUMNS.

    Copies have names of their own, with the clone's id: what a clone that fails removes is never a file of another one.
    """
    adds: list[AddFile] = []
    copies: list[FileCopy] = []
    vectors: dict[str, uuid.UUID] = {}
    for number, row in enumerate(rows):
        path = _new_path(row["path"], f"part-{number:05d}-{clone}")
        copies.append(FileCopy(row["path"], path, row["size"]))
        add = msgspec.structs.replace(add_of(row, data_change=True), path=encode_path(path))
        vector = DeletionVector.of(row["vector"])
        if add.deletion_vector is not None and vector is not None and vector.path is not None:
            if vector.path not in vectors:
                vectors[vector.path] = uuid.uuid4()
                copies.append(FileCopy(vector.path, f"{clone}/deletion_vector_{vectors[vector.path]}.bin", 0))
            # "<random prefix - optional><base85 encoded uuid>"  delta protocol, Deletion Vector Descriptor Schema
            name = f"{clone}{z85_encoded(vectors[vector.path].bytes)}"
            descriptor = msgspec.structs.replace(add.deletion_vector, storage_type="u", path_or_inline_dv=name)
            add = msgspec.structs.replace(add, deletion_vector=descriptor)
        adds.append(add)
    return adds, copies


@contextmanager
def copying(
    copies: Sequence[FileCopy], copy: CopyFiles | None, source: Storage, target: Storage, clone: uuid.UUID
) -> Iterator[None]:
    """Copies files for the commit that is made within it; without `copy` there are none. They are removed where copying
    fails, or the commit is refused, by a table that is there or a store that has no way to create one: after any other
    error it may be there. Until all is settled, a marker says whose files these are. CommitConflictError where a table
    is."""
    if copy is None:
        yield
        return
    check_no_table(target)
    marker = marker_name(clone)
    paths = [*(file.target for file in copies), marker]
    try:
        target.put(marker, b"")
        copy(copies, source, target)
    except BaseException:
        target.delete_each(paths)  # the error that made them useless is the one to raise
        raise
    try:
        yield
    except (CommitConflictError, UnsupportedTableError):
        target.delete_each(paths)
        raise
    target.delete_each([marker])


def copy_files(copies: Sequence[FileCopy], source: Storage, target: Storage, progress: Progress | None = None) -> None:
    """Copy files in this process; `progress`: called with the bytes of those done, and of all. DataFileMissingError for
    one that is not there."""
    sizes = [file.size for file in copies]
    # closed where `progress` raises: nothing is copied any more when the copies are removed
    with closing(target.each_ahead(partial(_copy, source, target), copies, _FILES_AHEAD)) as done:
        for _ in zip(with_progress(copies, sizes, progress), done, strict=True):
            pass


def _copy(source: Storage, target: Storage, copy: FileCopy) -> None:
    try:
        with source.open(copy.source, copy.size) as file:
            target.put_file(copy.target, file)
    except FileNotFoundError as error:
        raise DataFileMissingError(
            f"file {copy.source} is in the log of {source.root} but not in the store",
            fix="restore the file, or clone a version that does not need it",
            place=copy.source,
        ) from error


def _new_path(path: str, stem: str) -> str:
    """A path in the same folder of partitions, with a new name of the same ending."""
    folder, _, name = path.rpartition("/")
    new_name = f"{stem}.{name.partition('.')[2] or 'parquet'}"
    return f"{folder}/{new_name}" if folder and not is_absolute(path) and ".." not in folder.split("/") else new_name
