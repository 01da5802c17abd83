"""Paths to whether they repeat the values that the log records, in folders as Hive names them: `day=2026-03-01`.

The log alone counts. Where the folders of a file say the very same, polars may take the values from them: all files are
one scan then, in place of a scan for each file (benches/bench_rows.py, all partitions: a tenth of the CPU time).
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

_NULL = "__HIVE_DEFAULT_PARTITION__"
_COLUMN = re.compile(r"\w[\w.-]*", re.ASCII)
_TEXT = re.compile(r"(?!null$)[a-z0-9][\w.-]*", re.ASCII | re.IGNORECASE)
"""Texts that are spelled alike in a path, and are no word for null."""


def repeats_values(path: str, values: Mapping[str, Any]) -> bool:
    """Whether the path of a file has a folder for each of these columns, named after the column and its value, and no
    other part that could be taken for one."""
    *folders, name = path.split("/")
    pairs = {folder for folder in folders if "=" in folder}
    return (
        "=" not in name
        and len(pairs) == len(values)
        and all(_COLUMN.fullmatch(c) is not None and f"{c}={_folder_text(v)}" in pairs for c, v in values.items())
    )


def _folder_text(value: Any) -> str | None:
    if value is None:
        return _NULL
    if type(value) is str:
        return value if _TEXT.fullmatch(value) else None
    return str(value) if type(value) in (int, date) else None
