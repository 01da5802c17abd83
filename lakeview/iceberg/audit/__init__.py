"""The audit of an Iceberg table: every snapshot to verdicts, law by law, from metadata and manifests alone."""

from __future__ import annotations

from lakeview.iceberg.audit.audit import audit

__all__ = ["audit"]
