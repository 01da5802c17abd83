"""JSON to the checksum that `_last_checkpoint` carries (delta protocol, JSON checksum)."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def checksum(data: bytes) -> str | None:
    """The checksum a `_last_checkpoint` of these bytes should carry; None if they are no JSON object.

    MD5 over its canonical form (delta protocol, JSON checksum): each value with the path to it, sorted by path.
    """
    try:
        value = json.loads(data, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
        if not isinstance(value, dict):
            return None
        pairs = sorted((p.encode(), v) for p, v in _leaves({k: v for k, v in value.items() if k != "checksum"}, ""))
    except (ValueError, RecursionError):  # a lone surrogate has no bytes: a ValueError too
        return None
    text = ",".join(f"{path.decode()}={leaf}" for path, leaf in pairs)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    entries: list[tuple[str, Any]]
    if isinstance(value, dict):
        entries = [(f'"{quote(k, safe="")}"', v) for k, v in value.items()]
    elif isinstance(value, list):
        entries = [(str(i), v) for i, v in enumerate(value)]
    else:
        yield path, _scalar(value)
        return
    for key, inner in entries:
        yield from _leaves(inner, f"{path}+{key}" if path else key)


def _scalar(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return f'"{quote(value, safe="")}"'
    return {None: "null", True: "true", False: "false"}[value]
