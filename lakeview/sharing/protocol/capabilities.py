"""The capabilities header: what one end of the protocol says of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one end says of itself in the capabilities header, in lower case.

    `formats`: those a client takes, or the one a server chose; empty where nothing is said, which means parquet.
    `reader_features`: those a client has. `end_stream`: whether an endStreamAction is asked for, or will come.
    """

    formats: tuple[str, ...] = ()
    reader_features: frozenset[str] = frozenset()
    end_stream: bool | None = None

    @property
    def header(self) -> str:
        """The header's value."""
        parts = []
        if self.formats:
            parts.append(f"responseformat={','.join(self.formats)}")
        if self.reader_features:
            parts.append(f"readerfeatures={','.join(sorted(self.reader_features))}")
        if self.end_stream is not None:
            parts.append(f"includeendstreamaction={str(self.end_stream).lower()}")
        return ";".join(parts)


def parse_capabilities(text: str | None) -> Capabilities:
    """A header's value, or that there is none: "semicolon separated capabilities", keys and values of any case.

    Unknown keys are skipped; a key given twice counts by its last values.
    """
    by_key: dict[str, tuple[str, ...]] = {}
    for part in (text or "").split(";"):
        key, equals, values = part.partition("=")
        if equals:
            by_key[key.strip().lower()] = tuple(v for value in values.split(",") if (v := value.strip().lower()))
    ends = by_key.get("includeendstreamaction")
    return Capabilities(
        by_key.get("responseformat", ()),
        frozenset(by_key.get("readerfeatures", ())),
        None if ends is None else ends == ("true",),
    )
