"""Blocks of files that were read over the network, cached by file id."""

from __future__ import annotations

from lakeview.storage.byte_cache import ByteBoundedCache

BLOCK = 1 << 20
"""Bytes of a block; the last one of a file is shorter."""

_MAX_BYTES = 256 << 20

Blocks = ByteBoundedCache[tuple[str, int], bytes]
"""Blocks by file id and number. The id stays the same when the URL does not: "A client may cache the file content and
use this id as a key"."""


def block_cache(max_bytes: int = _MAX_BYTES) -> Blocks:
    """An empty cache of blocks."""
    return Blocks(max_bytes, len)
