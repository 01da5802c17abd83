"""The log doctor: a table's log to findings, each with its evidence and the rule it breaks.

It looks at every file of the log, not only at what the latest version needs, and reports what it finds instead of
raising: a table that no longer opens is the one that needs it most.
"""

from lakeview.delta.lint.checkup import check

__all__ = ["check"]
