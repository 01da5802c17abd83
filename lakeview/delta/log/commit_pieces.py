"""A large commit file to pieces of whole lines, so that it is never in memory as a whole.

A file is cut only between two objects: a pretty-printed action stays whole, and so does a line that is longer than a
piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

_BETWEEN = b"}\n{"
"""Where one object ends and the next begins. Inside an object a comma or a bracket would follow the brace."""


def blocks(read: Callable[[int, int], bytes], size: int, most: int, *, newest_first: bool) -> Iterator[bytes]:
    """A file of `size` bytes in blocks of about `most` bytes, its first block first, or its last one.

    `read` gives a range of the file: from a byte on, so many bytes.
    """
    rest, starts = b"", range(0, size, most)
    for start in reversed(starts) if newest_first else starts:
        data = read(start, min(most, size - start))
        if newest_first:
            data = data + rest
            at = _begin(data.find(_BETWEEN)) if start else 0
            whole, rest = (data[at:], data[:at]) if at or not start else (b"", data)
        else:
            data = rest + data
            at = _begin(data.rfind(_BETWEEN)) if start != starts[-1] else len(data)
            whole, rest = data[:at], data[at:]
        if whole:
            yield whole


def cut(data: bytes, most: int, *, newest_first: bool) -> Iterator[bytes]:
    """Bytes of a commit in pieces of about `most` bytes, each copied when it is asked for."""
    ends = list(_ends(data, most))
    pairs = list(zip([0, *ends[:-1]], ends, strict=True))
    return (data[start:end] for start, end in (reversed(pairs) if newest_first else pairs))


def _ends(data: bytes, most: int) -> Iterator[int]:
    at = 0
    while len(data) - at > most:
        end = _begin(data.rfind(_BETWEEN, at, at + most))
        if end <= at:  # a line of more than a piece
            end = _begin(data.find(_BETWEEN, at + most)) or len(data)
        yield end
        at = end
    if at < len(data):
        yield len(data)


def _begin(place: int) -> int:
    """The place of the object that begins behind what was found; 0 if nothing was."""
    return place + 2 if place >= 0 else 0
