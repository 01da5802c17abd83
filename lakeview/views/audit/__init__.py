"""Whether commits kept their promises: summaries of an audit, and its findings."""

from lakeview.views.audit import findings, summary

__all__ = ["findings", "summary"]
