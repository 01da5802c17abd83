"""Which findings of the log doctor a table that lakeview wrote must not have."""

from __future__ import annotations

from lakeview.model.findings import Severity

GRAVE = frozenset({Severity.BROKEN, Severity.ATTENTION})
