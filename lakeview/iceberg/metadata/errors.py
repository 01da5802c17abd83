"""The errors of metadata files that cannot be understood."""

from __future__ import annotations

from lakeview.model.errors import CorruptTableError


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
