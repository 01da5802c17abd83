"""The marker of a deep clone under way: a hidden file whose name says which files of a folder are copies of it.

A clone that was killed leaves copies in a folder without a table, which a second attempt has to tell from the files of
others. The second one's vacuum deletes them, and the marker, as it does all that its table does not name.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

_MARKER = re.compile(r"\.clone\.([0-9a-f]{32})\.tmp")


def marker_name(clone: uuid.UUID) -> str:
    """The name of the marker of a clone, each of whose copies has the clone's id in its path."""
    return f".clone.{clone.hex}.tmp"


def has_marker(names: Sequence[str]) -> bool:
    """Whether one of the names in a folder is that of a marker."""
    return any(map(_MARKER.fullmatch, names))


def without_copies(names: Sequence[str]) -> list[str]:
    """Those of the names of all files below a folder that are not copies of a clone whose marker is among them."""
    clones = [str(uuid.UUID(match[1])) for match in map(_MARKER.fullmatch, names) if match is not None]
    return [name for name in names if not any(clone in name for clone in clones)]
