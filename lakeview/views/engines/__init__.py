"""Which engines read and write a table, and what it requires of them."""

from lakeview.views.engines import compatibility, requirements, rules

__all__ = ["compatibility", "requirements", "rules"]
