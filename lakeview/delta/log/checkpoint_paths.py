"""A batch of a checkpoint's file actions to those with some paths, and whether each path is its own key."""

from __future__ import annotations

import re

import polars as pl
import pyarrow as pa

from lakeview.delta.log.paths import decoded


def of_paths(arrays: dict[str, pa.Array], paths: pl.Series) -> dict[str, pa.Array]:
    """The rows of a batch with these paths; nothing where there are none."""
    rows = _has_path(arrays, paths)
    return {leaf: array.filter(rows.to_arrow()) for leaf, array in arrays.items()} if rows.any() else {}


def documents_at(arrays: dict[str, pa.Array], paths: pl.Series) -> pl.Series:
    """The documents of the rows of a batch with these paths, empty where there is none, null for the others."""
    rows = _has_path(arrays, paths)
    documents = pl.Series("stats", [None], dtype=pl.String).new_from_index(0, rows.len())
    if not rows.any():
        return documents
    # as texts of their own: a part of a column holds the whole of it
    texts = pl.Series(arrays["stats"]).filter(rows).to_list() if "stats" in arrays else [""]
    return documents.scatter(rows.arg_true(), pl.Series([text or "" for text in texts], dtype=pl.String))


def _has_path(arrays: dict[str, pa.Array], paths: pl.Series) -> pl.Series:
    return decoded(pl.Series(arrays["path"]).cast(pl.String)).is_in(paths.implode())


class Spelling:
    """Whether every path so far is its own key. Safe to use from several threads: once false, it stays false."""

    def __init__(self) -> None:
        self.plain = True

    def look(self, paths: pa.Array) -> None:
        """Note a batch of recorded paths."""
        if self.plain and not _all_plain(paths):
            self.plain = False


def _all_plain(paths: pa.Array) -> bool:
    """Searches Arrow's buffers: a fifth of the time of a pattern a row."""
    if not pa.types.is_string(paths.type):
        return False
    _, offsets, texts = paths.buffers()
    if texts is None:
        return True
    first, last = (int.from_bytes(offsets[4 * i : 4 * i + 4], "little") for i in (paths.offset, _end(paths)))
    data = bytes(memoryview(texts)[first:last])
    odd = b"%" in data or b":" in data or _ODD_SLASH.search(data) is not None
    return not odd and not pl.Series(paths).str.contains("^[./]").any()


_ODD_SLASH = re.compile(rb"/[/.]")


def _end(array: pa.Array) -> int:
    return int(array.offset) + len(array)
