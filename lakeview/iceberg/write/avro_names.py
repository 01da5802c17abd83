"""Names of partition fields to names that Avro allows: of letters, digits and underscores."""

from __future__ import annotations


def avro_name(name: str) -> str:
    """A name as the reference implementation spells it: `a b` is `a_x20b`, `1st` is `_1st`."""
    spelled = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"_x{ord(c):X}" for c in name)
    return f"_{spelled}" if spelled[:1].isdigit() else spelled
