"""File identities to parts of a checkpoint: multi-part checkpoints "MUST be clustered by spark-style hash
partitioning", so that files of two writers that race make one checkpoint (delta protocol, Multi-part checkpoint).

Delta's writer in Spark hashes the path alone (Checkpoints.scala): it has a file with a deletion vector in another part,
where the protocol's key is path and vector.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lakeview.delta.log.paths import encode_paths

_SEED = 42
_ROWS = 65_536
"""Texts that are hashed at once: numbers for each in memory, whatever the length of the checkpoint."""

Hashes = NDArray[np.uint32]


def part_without_file(parts: int) -> int:
    """The part, from 0, of the actions that have no path: null leaves the seed as it is."""
    return _SEED % parts


def part_numbers(names: pl.Series, parts: int) -> pl.Series:
    """The part, from 0, of the file of each identity, as `part`: by its path as the log has it, then by its deletion
    vector if it has one."""
    if parts == 1:
        return pl.Series("part", [0], dtype=pl.Int64).new_from_index(0, names.len())
    pieces = [_part_numbers(names[at : at + _ROWS], parts) for at in range(0, names.len(), _ROWS)]
    return pl.Series("part", np.concatenate(pieces) if pieces else [], dtype=pl.Int64)


def _part_numbers(names: pl.Series, parts: int) -> NDArray[np.int64]:
    columns = names.str.split_exact("\0", 1).struct.unnest()
    path, vector = (columns[name] for name in columns.columns)
    hashes = spark_hash(encode_paths(path), np.full(names.len(), _SEED, np.uint32))
    hashes = spark_hash(vector, hashes) if vector.null_count() < vector.len() else hashes
    return hashes.view(np.int32).astype(np.int64) % parts  # of a positive divisor, which is Spark's pmod


def spark_hash(texts: pl.Series, seeds: Hashes) -> Hashes:
    """Spark's `hash` of each text, from a seed of its own; null leaves the seed as it is.

    MurmurHash3 for x86 with 32 bits, but for the bytes behind the last whole word: each is a word of its own, signed.
    """
    data = np.frombuffer(b"".join(texts.fill_null("").cast(pl.Binary).to_list()) + bytes(4), np.uint8)
    sizes = texts.fill_null("").str.len_bytes().to_numpy().astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    state = seeds.copy()
    with np.errstate(over="ignore"):
        for word in range(int(sizes.max(initial=0)) // 4):
            rows = np.flatnonzero(sizes >= 4 * word + 4)
            places = starts[rows, None] + range(4 * word, 4 * word + 4)
            state[rows] = _mix(state[rows], data[places].view("<u4").ravel())
        for tail in range(3):
            rows = np.flatnonzero(sizes % 4 > tail)
            block = data[starts[rows] + sizes[rows] // 4 * 4 + tail].view(np.int8).astype(np.int32).view(np.uint32)
            state[rows] = _mix(state[rows], block)
        state ^= sizes.astype(np.uint32)
        state = (state ^ state >> np.uint32(16)) * np.uint32(0x85EB_CA6B)
        state = (state ^ state >> np.uint32(13)) * np.uint32(0xC2B2_AE35)
    return np.where(texts.is_null().to_numpy(), seeds, state ^ state >> np.uint32(16))


def _mix(state: Hashes, block: Hashes) -> Hashes:
    block = block * np.uint32(0xCC9E_2D51)
    state = state ^ (block << np.uint32(15) | block >> np.uint32(17)) * np.uint32(0x1B87_3593)
    return (state << np.uint32(13) | state >> np.uint32(19)) * np.uint32(5) + np.uint32(0xE654_6B64)
