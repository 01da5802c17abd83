"""What a table asks for and its writer does not do, as errors."""

from __future__ import annotations

from lakeview.model.errors import UnsupportedTableError


def not_honoured(name: str, text: str) -> UnsupportedTableError:
    """The refusal of a table that has a property of this value."""
    return UnsupportedTableError(
        f"{name} is {text!r}, which this writer would not honour",
        fix="write the table with the engine that set it",
        place=name,
        kind="unsupported-property",
    )


def unsupported(
    message: str, kind: str, fix: str = "write the table with the engine that owns it"
) -> UnsupportedTableError:
    """The refusal of a table for what it is."""
    return UnsupportedTableError(message, fix=fix, kind=kind)
