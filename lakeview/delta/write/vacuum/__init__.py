"""A table and a retention to the files that no version within it needs, deleted when that is asked for."""

from lakeview.delta.write.vacuum.run import VACUUM, vacuum

__all__ = ["VACUUM", "vacuum"]
