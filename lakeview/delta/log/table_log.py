"""The files of `_delta_log` to bytes and actions: each commit is read once while it is needed."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from operator import itemgetter

from lakeview.delta.log.actions import Metadata, Protocol
from lakeview.delta.log.commit_info import CommitInfo
from lakeview.delta.log.commits import Commit, Definition, cut_pieces, mentions, parse_commit, read_blocks
from lakeview.delta.log.definition_cache import DefinitionCache
from lakeview.delta.log.log_checkpoints import LogCheckpoints
from lakeview.delta.log.paths import LOG_FOLDER, commit_name
from lakeview.model.errors import CorruptTableError, VersionNotFoundError
from lakeview.storage import Storage
from lakeview.storage.byte_cache import ByteBoundedCache
from lakeview.storage.interface import FILES_AHEAD, READ_AHEAD, refuse_oversized

_CACHE_BYTES = 64 << 20
_FIRST_BATCH, _BATCH = 8, 256
_READ_BYTES, _PIECE_BYTES = 4 << 20, 512 << 10


class TableLog(LogCheckpoints):
    """The files of one table's log: its listing, and what reads checkpoints and commits.

    Commits are immutable: their bytes are cached, at most 64 MiB of them, but for those of a whole long log of this
    machine (benches/bench_logs.py, history). NotATableError if there is neither commit
    nor complete checkpoint.
    """

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._commits = ByteBoundedCache[int, bytes](_CACHE_BYTES, len)
        self.known_definitions = DefinitionCache()
        """What `definitions` gives of the commits that were read for it, or for something else."""

    def commit(self, version: int) -> Commit:
        """One commit. VersionNotFoundError if its file is not there, CorruptTableError if it cannot be read."""
        return parse_commit(self.commit_bytes(version), version)

    def commit_bytes(self, version: int) -> bytes:
        """The bytes of one commit file; errors as `commit`."""
        if (cached_bytes := self._commits.get(version)) is not None:
            return cached_bytes
        name = commit_name(version) if version >= 0 else str(version)
        try:
            data = self.storage.read(f"{LOG_FOLDER}/{name}")
        except FileNotFoundError as error:
            if self.size(version) is not None:
                self.is_outdated = True
                raise CorruptTableError(
                    f"commit {name} was listed and is gone", fix="refresh: a cleanup may be running", place=name,
                    kind="versions-not-contiguous",
                ) from error  # fmt: skip
            raise VersionNotFoundError(
                f"the log of {self.storage.root} has no commit file for version {version}",
                fix="its file was cleaned up or never written: the table's versions tell what is there",
                place=name,
            ) from error
        self._keep(version, data)
        return data

    def _keep(self, version: int, data: bytes) -> None:
        if len(data) <= _CACHE_BYTES:
            self._commits.put(version, data)

    def each_bytes(self, versions: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """(version, bytes) of several commits in the order asked for, a batch in memory at a time; errors as `commit`.

        Batches grow, so that who stops early has read little. From a remote store several are read at once.
        """
        at, size = 0, self._first_batch
        while at < len(versions):
            # local files of many commits are read again in the time that it takes to cache them
            yield from self._read_batch(versions[at : at + size], retain=len(versions) <= _BATCH)
            at, size = at + size, min(2 * size, _BATCH)

    def _read_batch(self, versions: Sequence[int], *, retain: bool = True) -> list[tuple[int, bytes]]:
        contents = {v: data for v in versions if (data := self._commits.get(v)) is not None}
        missing = [v for v in versions if v not in contents]
        if len(missing) > 1 and not self.storage.remote:
            with suppress(FileNotFoundError):  # one of them is gone: the other way says which
                files = self.storage.read_all(LOG_FOLDER, [commit_name(v) for v in missing])
                contents |= zip(missing, files, strict=True)
                for version in missing if retain else ():
                    self._keep(version, contents[version])
                missing = []
        contents |= zip(missing, self.storage.each_ahead(self.commit_bytes, missing, FILES_AHEAD), strict=True)
        return [(v, contents[v]) for v in versions]

    @property
    def _first_batch(self) -> int:
        """Commits of the first batch. Of a remote store several take as long as one."""
        return READ_AHEAD if self.storage.remote else _FIRST_BATCH

    def in_pieces(self, version: int) -> bool:
        """Whether `each_piece` gives a commit in several pieces, by the size that the listing reported."""
        return (self.size(version) or 0) > _PIECE_BYTES

    def each_piece(self, versions: Sequence[int], *, newest_first: bool = False) -> Iterator[tuple[int, bytes]]:
        """(version, bytes) of several commits in the order asked for, about 4 MiB in memory at a time.

        A commit of more than 512 KiB comes in pieces of whole lines, since decoded actions take seven times the bytes:
        its first piece first, or its last one with `newest_first`. Small commits are read several at once; of one that
        is larger than 4 MiB ranges are read, and its bytes are not cached. Errors as `commit`.
        """
        for batch in self._batches(versions):
            blocks: Iterable[tuple[int, bytes]]
            size = self.size(batch[0]) or 0
            if size > _READ_BYTES:
                refuse_oversized(commit_name(batch[0]), size, self.storage.config)
                read = partial(self._range, batch[0])
                blocks = (
                    (v, b) for v in batch for b in read_blocks(read, size, _READ_BYTES, newest_first=newest_first)
                )
            else:
                blocks = self._read_batch(batch)
            for version, data in blocks:
                pieces = (
                    cut_pieces(data, _PIECE_BYTES, newest_first=newest_first) if self.in_pieces(version) else [data]
                )
                yield from ((version, piece) for piece in pieces)

    @contextmanager
    def whole_lines(self) -> Iterator[None]:
        """Around what decodes `each_piece`: an error that counts the lines of a piece becomes that of its commit."""
        try:
            yield
        except CorruptTableError as error:
            version = (error.place or "").partition(".")[0]
            if error.kind == "corrupt-commit" and version.isdecimal():
                self.commit(int(version))  # raises the error with the line of the whole file
            raise

    def _batches(self, versions: Sequence[int]) -> Iterator[list[int]]:
        """Commits that are read at once, about 4 MiB and more of them each time; a larger one alone."""
        batch: list[int] = []
        size, most = 0, self._first_batch
        for version in versions:
            more = self.size(version) or 0
            if batch and (size + more > _READ_BYTES or len(batch) >= most):
                yield batch
                batch, size, most = [], 0, min(2 * most, _BATCH)
            batch.append(version)
            size += more
        if batch:
            yield batch

    def _range(self, version: int, start: int, length: int) -> bytes:
        try:
            return self.storage.read_range(f"{LOG_FOLDER}/{commit_name(version)}", start, length)
        except FileNotFoundError:
            return self.commit_bytes(version)[start : start + length]  # raises the error that says what is gone

    def definitions(self, versions: Sequence[int]) -> Iterator[tuple[int, Definition | None]]:
        """The last protocol and the last metaData action of each of these commits, None for one that is corrupt. Each
        commit is searched as bytes once, and parsed if it may hold one. Other errors as `commit`."""
        definitions = self.known_definitions.of(versions)
        pieces = groupby(self.each_piece([v for v in versions if v not in definitions]), key=itemgetter(0))
        for version in versions:
            if version not in definitions:
                _, own = next(pieces)
                try:
                    definitions[version] = _definition(own)
                except CorruptTableError as error:
                    if error.kind != "corrupt-commit":
                        raise
                    definitions[version] = None
                self.known_definitions.put({version: definitions[version]})
            yield version, definitions[version]

    def definition(self, version: int) -> Definition:
        """What `definitions` gives of one commit, whose other lines may be corrupt; errors as `commit`."""
        with self.whole_lines():
            return _definition(self.each_piece([version]))

    def infos(self, versions: Sequence[int]) -> Iterator[tuple[int, CommitInfo]]:
        """What each of these commits says about itself; nothing for one that is corrupt. Other errors as `commit`."""
        for version, pieces in groupby(self.each_piece(versions), key=itemgetter(0)):
            yield version, _first_info(pieces)

    def commits(self, versions: Sequence[int]) -> Iterator[Commit]:
        """Several commits in the order asked for, each when it is asked for; errors as `commit`."""
        return (parse_commit(data, version) for version, data in self.each_bytes(versions))


def _definition(pieces: Iterable[tuple[int, bytes]]) -> Definition:
    """The last protocol and the last metaData of the pieces of one commit; an error as far as pieces that may hold one
    cannot be read."""
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    for version, data in pieces:
        if mentions(data, "protocol", "metaData"):
            newer = parse_commit(data, version).definition
            protocol, metadata = newer[0] or protocol, newer[1] or metadata
    return protocol, metadata


def _first_info(pieces: Iterable[tuple[int, bytes]]) -> CommitInfo:
    """What the first commitInfo among the pieces of a commit contains; empty without one, or before a corrupt line."""
    try:
        for version, data in pieces:
            if (info := parse_commit(data, version).info) != CommitInfo():
                return info
    except CorruptTableError:
        return CommitInfo()
    return CommitInfo()
