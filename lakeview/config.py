"""Environment to Config: allowed roots, where the demo lake lies, limits. One place for every setting."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from lakeview.errors import InvalidRequestError

VERSION = "0.1.0"
"""lakeview's own version, as pyproject.toml has it."""


@dataclass(frozen=True, slots=True)
class Config:
    """What the operator decides.

    `roots`: addresses that tables may be opened under, and that recorded absolute paths may point into; empty means
    any table may be opened, and its files must lie below its own root. `demo`: folder of the demo lake.
    `max_log_file_bytes`: a log file above this is refused instead of read into memory.
    `max_schema_depth`: a schema nested deeper is refused.
    """

    roots: tuple[str, ...] = ()
    demo: str = "demo-lake"
    max_log_file_bytes: int = 2 << 30
    max_schema_depth: int = 64


def settings(environment: Mapping[str, str] | None = None) -> Config:
    """The configuration in the environment.

    `LAKEVIEW_ROOTS`: addresses separated by commas, or by the system's path separator where none holds "://".
    `LAKEVIEW_DEMO`: the demo lake's folder. `LAKEVIEW_MAX_LOG_FILE_BYTES`: bytes.
    """
    env = os.environ if environment is None else environment
    return Config(
        roots=_roots(env.get("LAKEVIEW_ROOTS", "")),
        demo=env.get("LAKEVIEW_DEMO") or "demo-lake",
        max_log_file_bytes=_number(env, "LAKEVIEW_MAX_LOG_FILE_BYTES", Config().max_log_file_bytes),
    )


def _roots(text: str) -> tuple[str, ...]:
    separator = "," if "," in text or "://" in text else os.pathsep
    return tuple(part.strip() for part in text.split(separator) if part.strip())


def _number(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name)
    if not text:
        return default
    if not text.isdecimal() or len(text) > 18:
        raise InvalidRequestError(f"{name} is {text!r}, which is no number", fix=f"set {name} to a whole number")
    return int(text)
