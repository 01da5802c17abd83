"""The audit of a Delta log: every commit to verdicts, law by law, from actions and statistics alone."""

from lakeview.delta.audit.audit import audit

__all__ = ["audit"]
