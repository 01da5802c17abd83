"""The audit of an Iceberg table: every snapshot to verdicts, law by law, from metadata and manifests alone."""

from lakeview.iceberg.audit.audit import audit

__all__ = ["audit"]
