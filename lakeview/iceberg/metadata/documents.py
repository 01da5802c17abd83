"""Metadata files as the JSON that they hold, gzip or not, and the errors of those that cannot be understood."""

import zlib
from typing import Any

import msgspec

from lakeview.model import limits
from lakeview.model.errors import CorruptTableError, UnsupportedTableError


def metadata_document(data: bytes, path: str) -> dict[str, Any]:
    """A metadata file as the JSON object that it is, with the fields that are not known here. CorruptTableError."""
    try:
        return msgspec.json.decode(inflate(data, path), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise corrupt(path, str(error) or type(error).__name__) from error


def inflate(data: bytes, path: str) -> bytes:
    """The text of a metadata file. CorruptTableError, and UnsupportedTableError for one that inflates to too much."""
    if not data.startswith(b"\x1f\x8b"):  # the name is no witness: both spellings and wrong ones occur
        return data
    inflator = zlib.decompressobj(31)
    try:
        text = inflator.decompress(data, limits.METADATA_BYTES)
    except zlib.error as error:
        raise corrupt(path, f"its gzip stream is broken: {error}") from error
    if inflator.unconsumed_tail:
        raise UnsupportedTableError(
            f"{path} inflates to more than {limits.METADATA_BYTES:,} bytes",
            fix="have the table's old snapshots expired",
            place=path,
            kind="too-large",
        )
    if not inflator.eof:
        raise corrupt(path, "its gzip stream is cut off")
    return text


def invalid(path: str, what: str) -> CorruptTableError:
    """The error for table metadata that breaks a rule of the specification."""
    return CorruptTableError(
        f"{path} is no valid table metadata: {what}",
        fix="open an older metadata file of the table, or have its writer repair it",
        place=path,
        kind="invalid-metadata",
    )


def corrupt(path: str, what: str) -> CorruptTableError:
    """The error for a metadata file that is no JSON."""
    return CorruptTableError(
        f"{path} cannot be read as JSON: {what}",
        fix="restore the file, or open an older metadata file of the table",
        place=path,
        kind="corrupt-file",
    )
