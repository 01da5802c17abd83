"""What the last reading of a checkpoint gave, for the next who asks for some of the same."""

import polars as pl

from lakeview.delta.log.log_segment import CheckpointFiles

_DOCUMENT_BYTES = 64 << 20


class LastListing:
    """The newest listing that any checkpoint of a log gave: the files, the history and the lives of files of one
    version all start from it; and the statistics of those files that a commit after it touches, by which loads are
    compared: to decompress all documents again takes as long as the listing. Safe to use from several threads."""

    def __init__(self) -> None:
        self._entry: tuple[tuple[str, ...], pl.DataFrame] | None = None
        self._documents: tuple[tuple[str, ...], pl.Series, pl.DataFrame] | None = None

    def of(self, files: CheckpointFiles) -> pl.DataFrame | None:
        """What is known of a checkpoint's adds."""
        entry = self._entry
        return None if entry is None or entry[0] != files.names else entry[1]

    def set(self, files: CheckpointFiles, listing: pl.DataFrame) -> None:
        """Take the place of the one before."""
        self._entry = files.names, listing

    def documents(self, files: CheckpointFiles, paths: pl.Series) -> pl.DataFrame | None:
        """The adds of a checkpoint with these paths, and their `stats`; None where they have to be read."""
        listing, entry = self.of(files), self._documents
        if entry is not None and entry[0] == files.names and paths.is_in(entry[1].implode()).all():
            adds = entry[2]
        elif listing is not None and not listing["path"].is_in(paths.implode()).any():
            adds = listing.clear().with_columns(pl.lit(None, pl.String).alias("stats"))
        else:
            return None
        return adds.filter(pl.col("path").is_in(paths.implode()))

    def set_documents(self, files: CheckpointFiles, paths: pl.Series, adds: pl.DataFrame) -> None:
        """Retain `adds`, all of a checkpoint's with these paths, and their `stats`, if they are not too large."""
        if adds["stats"].str.len_bytes().sum() <= _DOCUMENT_BYTES:
            self._documents = files.names, paths, adds
