"""Environment and configuration file to Config: allowed roots, catalogs, moved places, limits. One place for every
setting."""

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakeview.model.errors import InvalidRequestError

VERSION = "0.1.0"
"""lakeview's own version, as pyproject.toml has it."""


@dataclass(frozen=True, slots=True)
class Config:
    """What the operator decides.

    `roots`: addresses that tables may be opened under, and that recorded absolute paths may point into; empty means
    any table may be opened, and its files must lie below its own root. `demo`: folder of the demo lake.
    `max_log_file_bytes`: a log file above this is refused instead of read into memory.
    `max_schema_depth`: a schema nested deeper is refused.
    `relocate`: recorded prefixes of Iceberg tables to where they lie now; it allows no reading outside the roots.
    `plain_http`: whether shares may be read over http beyond this machine; `private_networks`: whether URLs that a
    sharing server hands out may lead into private address ranges (not where several users share one app).
    `share`: the configuration of the sharing server whose shares the Sharing page shows; `share_tokens`: whether that
    page may make tokens for recipients, as every user of the app then can.
    `polars_parquet`: whether plain Parquet files are read by polars' own scan, fast and in threads; without it by
    pyarrow alone, which refuses every corrupt file where polars may end the process.
    `catalogs`: properties of catalogs by their names, as pyiceberg takes them; they may hold credentials, and are not
    shown.
    `storage`: storage options by prefixes of addresses (`lakeview.storage.configured`); they are not shown either.
    """

    roots: tuple[str, ...] = ()
    demo: str = "demo-lake"
    max_log_file_bytes: int = 2 << 30
    max_schema_depth: int = 64
    relocate: Mapping[str, str] = field(default_factory=dict, hash=False)
    plain_http: bool = False
    private_networks: bool = True
    share: str = ""
    share_tokens: bool = False
    polars_parquet: bool = True
    catalogs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False, repr=False)
    storage: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False, repr=False)


def settings(environment: Mapping[str, str] | None = None) -> Config:
    """The configuration in the environment, and for what it leaves open, in the file that LAKEVIEW_CONFIG names.

    `LAKEVIEW_ROOTS`: addresses separated by commas, or by the system's path separator where none holds "://".
    `LAKEVIEW_DEMO`: the demo lake's folder. `LAKEVIEW_MAX_LOG_FILE_BYTES`: bytes.
    `LAKEVIEW_RELOCATE`: `old=new` separated by commas. `LAKEVIEW_SHARE`: a YAML file. `LAKEVIEW_PLAIN_HTTP`,
    `LAKEVIEW_PRIVATE_NETWORKS`, `LAKEVIEW_SHARE_TOKENS`, `LAKEVIEW_POLARS_PARQUET`: 1 or 0.
    The file is TOML: `roots` (a list), the others by the names of the fields, `[relocate]` with a line `"old" = "new"`
    for each prefix, `[catalogs.<name>]` with a catalog's properties, `[storage."s3://bucket"]` with the storage options
    of addresses below it. InvalidRequestError for what cannot be meant.
    """
    env = os.environ if environment is None else environment
    values = _file(env.get("LAKEVIEW_CONFIG", ""))
    for name, read in _VARIABLES.items():
        variable = f"LAKEVIEW_{name.upper()}"
        if (value := read(variable, env.get(variable, ""))) is not None:
            values[name] = value
    return Config(**values)


def task_settings(roots: Sequence[str]) -> Config:
    """The settings of this process, for a task that was made elsewhere under these roots: roots that are configured
    here win over them."""
    config = settings()
    return config if config.roots else replace(config, roots=tuple(roots))


def _roots(_: str, text: str) -> tuple[str, ...] | None:
    separator = "," if "," in text or "://" in text else os.pathsep
    return tuple(part.strip() for part in text.split(separator) if part.strip()) or None


def _text(_: str, text: str) -> str | None:
    return text or None


def _number(name: str, text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > 18:
        raise InvalidRequestError(f"{name} is {text!r}, which is no number", fix=f"set {name} to a whole number")
    return int(text)


def _pairs(name: str, text: str) -> dict[str, str] | None:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if any(not old.strip() or not new.strip() for old, _, new in pairs):
        raise InvalidRequestError(
            f"{name} is {text!r}, which names no places", fix=f"set {name} to old=new, several separated by commas"
        )
    return {old.strip(): new.strip() for old, _, new in pairs} or None


def _switch(name: str, text: str) -> bool | None:
    text = text.strip().lower()
    if text not in _SWITCHES:
        raise InvalidRequestError(f"{name} is {text!r}, neither on nor off", fix=f"set {name} to 1 or 0, or unset it")
    return _SWITCHES[text]


_SWITCHES = {
    **dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False), "": None,
}  # fmt: skip

_VARIABLES: Mapping[str, Callable[[str, str], Any]] = {
    "roots": _roots,
    "max_log_file_bytes": _number,
    "relocate": _pairs,
    **dict.fromkeys(("demo", "share"), _text),
    **dict.fromkeys(("plain_http", "private_networks", "share_tokens", "polars_parquet"), _switch),
}
"""What makes a setting of the name and text of its variable; None of one that leaves it open."""


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_prefixes(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(v, str) and k and v for k, v in value.items())


def _is_sections(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(v, dict) for v in value.values())


_SETTINGS = {
    "roots": (_is_texts, "a list of addresses"),
    "demo": (lambda value: isinstance(value, str), "a folder"),
    "max_log_file_bytes": (_is_number, "a whole number"),
    "relocate": (_is_prefixes, "a table of old to new prefixes"),
    "plain_http": (lambda value: isinstance(value, bool), "true or false"),
    "private_networks": (lambda value: isinstance(value, bool), "true or false"),
    "share": (lambda value: isinstance(value, str), "the path of a sharing server's configuration"),
    "share_tokens": (lambda value: isinstance(value, bool), "true or false"),
    "polars_parquet": (lambda value: isinstance(value, bool), "true or false"),
    "catalogs": (_is_sections, "a table of catalogs with their properties"),
    "storage": (_is_sections, "a table of addresses with their storage options"),
}
"""What the configuration file may hold, and of what kind."""


def _file(path: str) -> dict[str, Any]:
    if not path:
        return {}
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        raise InvalidRequestError(
            f"the configuration {path} cannot be read: {error.strerror}",
            fix="set LAKEVIEW_CONFIG to a file that is there, or unset it",
            place=path,
        ) from error
    except ValueError as error:  # TOML or UTF-8 that is none
        raise InvalidRequestError(
            f"the configuration {path} is no TOML: {error}", fix="correct the file", place=path
        ) from error
    for name, value in document.items():  # a value is not shown: it may hold credentials
        if name not in _SETTINGS:
            raise InvalidRequestError(
                f"the configuration {path} sets {name}, which is no setting",
                fix=f"choose from {', '.join(_SETTINGS)}",
                place=path,
            )
        fits, kind = _SETTINGS[name]
        if not fits(value):
            raise InvalidRequestError(
                f"the configuration {path} sets {name} to what is not {kind}", fix="correct the file", place=path
            )
    return {name: tuple(value) if name == "roots" else value for name, value in document.items()}
