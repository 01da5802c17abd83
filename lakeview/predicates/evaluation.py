"""Errors of polars, which evaluates conditions and values, to ours."""

from __future__ import annotations

import re

from lakeview.model.errors import InvalidRequestError

_PYTHON_ADVICE = re.compile(r" \(create native python .*\)")
_BEYOND_64_BITS = re.compile(r"conversion from `i128` to `i64` failed .*: \[(-?\d+)")
_TOO_LARGE = "is no integer of 64 bits"
_WITH_ZONE, _WITHOUT_ZONE = "Datetime('μs', 'UTC')", "Datetime('μs')"
_ZONES_MIXED = (
    "a timestamp with a time zone is compared with one without; a constant with an offset has a zone, as "
    "TIMESTAMP '2024-01-01 00:00:00+00:00'"
)


def reason(error: BaseException) -> str:
    """Why polars refused a condition or query, in one line, without its advice for those who write Python."""
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if _WITH_ZONE in line and _WITHOUT_ZONE in line:
        return _ZONES_MIXED
    if beyond := _BEYOND_64_BITS.match(line):
        return f"{beyond[1]} {_TOO_LARGE}"
    return _PYTHON_ADVICE.sub("", line)


def not_evaluated(subject: str, error: BaseException, fix: str) -> InvalidRequestError:
    """The error (kind bad-predicate) for what polars refused to evaluate."""
    why = reason(error)
    if why.endswith(_TOO_LARGE):
        fix = "leave such rows out, or write TRY_CAST(... AS BIGINT), which is null for them"
    return InvalidRequestError(f"{subject} cannot be evaluated: {why}", fix=fix, place="where", kind="bad-predicate")
