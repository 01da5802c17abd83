"""Version 0 of a table that names files which are there already: a clone's, or those of a folder of Parquet files."""

import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any
from urllib.parse import unquote

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lakeview.delta.data.deletion_vectors import DeletionVector
from lakeview.delta.data.file_statistics import FileStatistics
from lakeview.delta.data.partition_values import partition_columns, serialize
from lakeview.delta.data.row_tracking import MATERIALIZED
from lakeview.delta.data.schemas import schema_text
from lakeview.delta.data.type_widening import type_changes
from lakeview.delta.log.actions import AddFile, DomainMetadata, Metadata
from lakeview.delta.log.commits import json_text
from lakeview.delta.log.file_actions import PARTITION_VALUES
from lakeview.delta.log.paths import encode_path
from lakeview.delta.properties import PROTECTED_BEFORE
from lakeview.delta.write.checkpoint.struct_statistics import live_adds
from lakeview.delta.write.common_schema import common_schema
from lakeview.delta.write.create import check_no_files, check_no_iceberg_table, check_schema, lowest_protocol, put_first
from lakeview.delta.write.deep_clone import CopyFiles, copies_of, copying
from lakeview.delta.write.definition import Definition
from lakeview.delta.write.file_changes import add_of
from lakeview.delta.write.property_checks import check_changes
from lakeview.delta.write.row_ids import DOMAIN as ROW_DOMAIN
from lakeview.delta.write.row_ids import tracks_rows, with_row_ids
from lakeview.delta.write.target import Progress, Target, with_progress
from lakeview.model.addresses import is_absolute, is_local
from lakeview.model.clock import Clock
from lakeview.model.errors import CorruptTableError, InvalidRequestError, LakeviewError
from lakeview.model.partition_texts import HIVE_NULL
from lakeview.model.schema import Schema
from lakeview.model.snapshot import milliseconds
from lakeview.model.type_tree import fields_below
from lakeview.rows.footer_reader import read_footer
from lakeview.storage import Storage

_FOLDER = re.compile(r"([^=/]+)=([^/]*)")
_DAY_0 = date(1970, 1, 1).toordinal()
_EXACT = (pa.types.is_integer, pa.types.is_date)
"""Types whose bounds in a footer are those of the values, by every writer."""


def clone(
    source: Target,
    target: Storage,
    clock: Clock,
    version: int | None = None,
    at: datetime | None = None,
    new_properties: Mapping[str, str] | None = None,
    copy: CopyFiles | None = None,
) -> None:
    """Make a table at `target` of the files that another has, or had at a version or a moment: they stay where they are
    (a shallow clone), or are copied by `copy` (a deep one). `new_properties` are set besides those that the other has.

    Reading a shallow clone needs the source's folder among the allowed roots, where roots are configured. Row ids and
    commit versions are those of the clone's own log. CommitConflictError if there is a table at `target`,
    InvalidRequestError if other files are, UnsupportedTableError for a source that is not written here; for properties
    as when they are set. Where copying fails, or the commit is refused, copies are removed again.
    """
    check_no_files(target)
    state = source.state(version, at)
    definition = Definition(state, source.storage.root)
    if new_properties:
        check_changes(new_properties, definition.schema)
        definition.change_properties(new_properties)
    definition.check_writable()
    now = milliseconds(clock())
    files = live_adds(state)
    clone_id, root = uuid.uuid4(), source.storage.root
    adds, copies = copies_of(files, clone_id) if copy else ([_from_elsewhere(row, root) for row in files], [])
    every = state.domain_metadata().iter_rows() if definition.supports("domainMetadata") else ()
    domains = [DomainMetadata(name, text) for name, text in every if name != ROW_DOMAIN]
    # the clone's own commits are timed from its first one on, and none of its checkpoints is protected
    own = ("delta.inCommitTimestampEnablement", PROTECTED_BEFORE)
    properties = {k: v for k, v in definition.properties.items() if not k.startswith(own)}
    # "the version number of the log entry containing the add action": the source's are of another log, and so are those
    # in its files, which no property names any more; while row tracking is suspended, no file has an id
    properties |= {key: f"_row-{uuid.uuid4()}" for key in MATERIALIZED.values() if key in properties}
    adds = [msgspec.structs.replace(add, base_row_id=None, default_row_commit_version=None) for add in adds]
    if tracks_rows(definition):
        adds, mark = with_row_ids(adds, 0, -1)
        domains += [] if mark is None else [mark]
    metadata = msgspec.structs.replace(
        definition.metadata, id=str(uuid.uuid4()), created_time=now, configuration=properties
    )
    parameters = {"source": source.storage.root, "sourceVersion": state.version, "isShallow": copy is None}
    actions = [*_pairs(adds), *_pairs(domains)]
    metrics = _clone_metrics(adds, deep=copy is not None)
    with copying(copies, copy, source.storage, target, clone_id):
        put_first(target, "CLONE", parameters, metrics, definition.protocol, metadata, now, actions)


def _clone_metrics(adds: Sequence[AddFile], *, deep: bool) -> dict[str, str]:
    number, size = str(len(adds)), str(sum(add.size for add in adds))
    return {
        "sourceTableSize": size, "sourceNumOfFiles": number, "numRemovedFiles": "0", "removedFilesSize": "0",
        "numCopiedFiles": number if deep else "0", "copiedFilesSize": size if deep else "0",
    }  # fmt: skip


def convert(storage: Storage, partitions: Schema, clock: Clock, progress: Progress | None = None) -> None:
    """Make a table of the Parquet files of a folder, which stay as they are: each footer is read, no row is.

    `partitions`: the columns that folders such as `day=2026-01-01` name, in their types; `progress`: called with the
    bytes of the files done, and of all. InvalidRequestError for a
    folder without Parquet files, files that `common_schema` refuses, and folders that do not name these columns;
    CommitConflictError if there is a table, in Iceberg's format too: some of its files hold rows that were deleted.
    """
    files = _parquet_files(storage, partitions)
    sizes = {name: row["size"] for name, row in files.items()}
    names = with_progress(list(files), list(sizes.values()), progress)
    footers = dict(zip(names, storage.each_ahead(lambda n: _footer(storage, n, sizes[n]), list(files)), strict=True))
    schema = common_schema(footers)
    overlap = [f.name for f in partitions if f.name in schema]
    whole = Schema((*(f for f in schema if f.name not in overlap), *partitions))
    has_widening = any(type_changes(field) for _, field in fields_below(whole))
    check_schema(whole, partitions.names)
    values = dict(zip(files, _partition_values(files, partitions), strict=True))
    adds = [
        AddFile(
            encode_path(name),
            row["size"],
            values[name],
            None if row["modified"] is None else milliseconds(row["modified"]),
            stats=_statistics(footers[name]),
        )
        for name, row in files.items()
    ]
    now = milliseconds(clock())
    metadata = Metadata(
        id=str(uuid.uuid4()), schema_string=schema_text(whole), partition_columns=partitions.names, created_time=now,
        configuration={"delta.enableTypeWidening": "true"} if has_widening else {},
    )  # fmt: skip
    parameters = {
        "numFiles": len(adds),
        "partitionedBy": json_text(partitions.names),
        "collectStats": True,
        "sourceFormat": "parquet",
    }
    metrics = {"numConvertedFiles": str(len(adds))}
    put_first(
        storage, "CONVERT", parameters, metrics, lowest_protocol(metadata, storage.root), metadata, now, _pairs(adds)
    )


def _parquet_files(storage: Storage, partitions: Schema) -> dict[str, dict[str, Any]]:
    """The rows of a listing, by name, of the data files that could be part of a table."""
    everything = storage.walk()
    check_no_iceberg_table(storage, everything.filter(pl.col("name").str.starts_with("metadata/"))["name"])
    listing = everything.filter(pl.col("name").str.ends_with(".parquet"))
    files = {
        row["name"]: row
        for row in listing.iter_rows(named=True)
        if not any(_is_hidden(part, partitions) for part in row["name"].split("/"))
    }
    if not files:
        raise InvalidRequestError(
            f"{storage.root} holds no Parquet file that could be part of a table", fix="give a folder of data files"
        )
    return files


def _is_hidden(part: str, partitions: Schema) -> bool:
    """Whether a file or folder is no part of a table by its name: a folder of a partition column is one."""
    folder = _FOLDER.fullmatch(part)
    return part.startswith(("_", ".")) and (folder is None or unquote(folder[1]) not in partitions)


def _pairs(actions: Sequence[AddFile | DomainMetadata]) -> list[tuple[str, Any]]:
    return [("add" if isinstance(action, AddFile) else "domainMetadata", action) for action in actions]


def _from_elsewhere(row: Mapping[str, Any], root: str) -> AddFile:
    """The add of a file of another table, by absolute paths."""
    add = add_of(row, data_change=True)
    vector = DeletionVector.of(row["vector"])
    descriptor = add.deletion_vector
    if descriptor is not None and vector is not None and vector.path is not None:
        place = encode_path(absolute_path(vector.path, root))
        descriptor = msgspec.structs.replace(descriptor, storage_type="p", path_or_inline_dv=place)
    return msgspec.structs.replace(add, path=encode_path(absolute_path(row["path"], root)), deletion_vector=descriptor)


def absolute_path(path: str, root: str) -> str:
    """A path of a table with this root as one that names its place alone."""
    if is_absolute(path):
        return path
    return f"file://{root}/{path}" if is_local(root) else f"{root}/{path}"


def _footer(storage: Storage, name: str, size: int) -> pq.FileMetaData:
    try:
        with storage.open(name, size) as handle:
            footer = read_footer(handle)
            Schema.from_arrow(footer.schema.to_arrow_schema())  # a name may be no text, which pyarrow sees late
            return footer
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, LakeviewError):  # access denied, or a store that does not answer: not the file's fault
            raise
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise CorruptTableError(
            f"{name} is no Parquet file that can be looked into: {why}",
            fix="take it out of the folder, or give it a name that begins with _",
            place=name,
            kind="corrupt-data-file",
        ) from error


def _hive_values(name: str, partitions: Schema) -> dict[str, str | None]:
    pairs = [(unquote(m[1]), unquote(m[2])) for m in map(_FOLDER.fullmatch, name.split("/")[:-1]) if m is not None]
    values, names = dict(pairs), [column for column, _ in pairs]
    if set(names) != set(partitions.names) or len(values) < len(names):
        raise InvalidRequestError(
            f"the folders of {name} name {', '.join(names) or 'no column'}, and partitions are by "
            f"{', '.join(partitions.names) or 'no column'}",
            fix="give the columns that folders name, with their types: partition_by=",
            place=name,
            kind="partition-mismatch",
        )
    return {n: None if values[n] in ("", HIVE_NULL) else values[n] for n in partitions.names}


def _partition_values(files: Iterable[str], partitions: Schema) -> list[dict[str, str | None]]:
    """The values in the folders' names, spelled as our data files record them: readers differ about other spellings,
    such as a time with an offset. InvalidRequestError names a text that is no value of its type."""
    texts = [_hive_values(name, partitions) for name in files]
    if not len(partitions):
        return texts
    try:
        columns = partition_columns(pl.Series(texts, dtype=PARTITION_VALUES), list(partitions))
    except CorruptTableError as error:
        raise InvalidRequestError(
            error.message, fix="give the column another type in partition_by, such as string", place=error.place,
            kind="partition-mismatch",
        ) from error  # fmt: skip
    rows = zip(*(column.to_list() for column in columns), strict=True)
    return [dict(zip(partitions.names, map(serialize, row), strict=True)) for row in rows]


def _statistics(footer: pq.FileMetaData) -> str:
    """What a footer says of all row groups: the number of rows, and exact bounds and null counts where it has them."""
    statistics = FileStatistics()
    statistics.records = footer.num_rows
    types = {field.name: field.type for field in footer.schema.to_arrow_schema()}
    paths = Counter(footer.schema.column(i).path for i in range(footer.num_columns))
    for index, chunks in _chunks(footer):
        name = footer.schema.column(index).path
        if paths[name] > 1 or name not in types:  # a column that is called a.b, and field b of column a
            continue
        if any(c.statistics is None or not c.statistics.has_null_count for c in chunks):
            continue
        stats = [c.statistics for c in chunks if c.statistics.null_count < c.num_values]
        statistics.add_column(name, sum(c.statistics.null_count for c in chunks), _bounds(types[name], stats))
    return statistics.text()


def _bounds(type_: pa.DataType, chunks: Sequence[pq.Statistics]) -> tuple[Any, Any]:
    """Minimum and maximum; None each if not exact, or days that are in no order or not in the years 1 to 9999."""
    if not chunks or not all(s.has_min_max for s in chunks) or not any(test(type_) for test in _EXACT):
        return None, None
    if not pa.types.is_date(type_):
        return min(s.min for s in chunks), max(s.max for s in chunks)
    first, last = (_DAY_0 + days for days in (min(s.min_raw for s in chunks), max(s.max_raw for s in chunks)))
    if not 1 <= first <= last <= date.max.toordinal():
        return None, None
    return date.fromordinal(first), date.fromordinal(last)


def _chunks(footer: pq.FileMetaData) -> Iterator[tuple[int, list[pq.ColumnChunkMetaData]]]:
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    for index in range(footer.num_columns):
        yield index, [group.column(index) for group in groups]
