"""Names in `_delta_log`, and the paths that actions record: text to what it stands for."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

import polars as pl

LOG_FOLDER = "_delta_log"
LAST_CHECKPOINT = f"{LOG_FOLDER}/_last_checkpoint"

LOG_FILES = pl.Schema(
    {
        "kind": pl.String(),
        "version": pl.Int64(),
        "part": pl.Int64(),
        "parts": pl.Int64(),
        "name": pl.String(),
        "size": pl.Int64(),
        "modified": pl.Datetime("ms", "UTC"),
    }
)
"""One row a file that belongs to the log. `kind`: commit, checkpoint (single file), part (of a multi-part checkpoint),
v2 (checkpoint under a UUID name). Other names in the folder are not part of the protocol and are left out."""

_NAME = (
    r"^(?<version>[0-9]{20})\.(?:"
    r"(?<commit>json)"
    r"|(?<checkpoint>checkpoint\.parquet)"
    r"|checkpoint\.(?<part>[0-9]{10})\.(?<parts>[0-9]{10})\.parquet"
    r"|(?<v2>checkpoint\.[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\.(?:json|parquet))"
    r")$"
)


def commit_name(version: int) -> str:
    """`00000000000000000007.json`: "the next available version number, zero-padded to 20 digits"."""
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """The name of a single-file checkpoint."""
    return f"{version:020d}.checkpoint.parquet"


def classify(listing: pl.DataFrame) -> pl.DataFrame:
    """A LISTING of `_delta_log` to LOG_FILES, by version; names that only resemble the protocol's are left out."""
    groups = pl.col("name").str.extract_groups(_NAME).alias("groups")
    return (
        listing.with_columns(groups)
        .unnest("groups")
        .with_columns(
            pl.coalesce(
                pl.when(pl.col("commit").is_not_null()).then(pl.lit("commit")),
                pl.when(pl.col("checkpoint").is_not_null()).then(pl.lit("checkpoint")),
                pl.when(pl.col("parts").is_not_null()).then(pl.lit("part")),
                pl.when(pl.col("v2").is_not_null()).then(pl.lit("v2")),
            ).alias("kind"),
            # a number beyond 64 bits is no version anyone could have written
            *(pl.col(c).cast(pl.Int64, strict=False) for c in ("version", "part", "parts")),
        )
        .filter(pl.col("kind").is_not_null() & pl.col("version").is_not_null())
        .select(LOG_FILES.names())
        .sort("version", "name")
    )


def decode_path(path: str) -> str:
    """A recorded path as a path: percent-decoded exactly once, `+` left alone.

    One that does not decode to UTF-8 stays as it is: it names no file, and two such paths must not become one.
    """
    if "%" not in path:
        return path
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        return path


def encode_path(path: str) -> str:
    """A path as an action records it: `decode_path` gives it back."""
    return quote(path, safe="/=:@!$&'()*,;~+", errors="surrogateescape")


def decoded(paths: pl.Series) -> pl.Series:
    """`decode_path` over a column; only values with a `%` are touched."""
    if not paths.str.contains("%", literal=True).any():
        return paths
    odd = paths.str.contains("%", literal=True)
    return (
        paths.to_frame("p")
        .select(
            pl.when(odd).then(pl.col("p").map_elements(decode_path, pl.String)).otherwise(pl.col("p")).alias(paths.name)
        )
        .to_series()
    )


def canonical(paths: pl.Series, root: str) -> pl.Series:
    """Decoded paths as keys: every spelling of one file becomes one text.

    Relative paths stay as they are; an absolute one below the root becomes relative, `file:/p`, `file:///p` and `/p`
    become `/p`. Two spellings of one file in one log do occur: a raw comparison leaves a removed file alive.
    """
    odd = paths.str.contains(r"^/|^[A-Za-z][A-Za-z0-9+.-]*:|(^|/)\.\.?(/|$)|//")
    if not odd.any():
        return paths
    prefix = root.rstrip("/") + "/"
    return (
        paths.to_frame("p")
        .select(
            pl.when(odd)
            .then(pl.col("p").map_elements(lambda p: _canonical(p, prefix), pl.String))
            .otherwise(pl.col("p"))
            .alias(paths.name)
        )
        .to_series()
    )


def _canonical(path: str, prefix: str) -> str:
    path = re.sub(r"^file:/+", "/", path, flags=re.IGNORECASE)
    path = re.sub(r"(?<!:)/{2,}", "/", path)
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] not in ("", ".."):
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts).removeprefix(prefix)
