"""`_last_checkpoint`: which checkpoint a reader may start from (delta protocol, Last Checkpoint File)."""

from __future__ import annotations

import msgspec

from lakeview.delta.log.json_checksum import checksum
from lakeview.delta.log.log_segment import checkpoint_hint
from lakeview.delta.log.paths import LAST_CHECKPOINT
from lakeview.model.errors import AccessDeniedError, UnsupportedTableError
from lakeview.storage import Storage


class LastCheckpoint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`size`: actions; `size_in_bytes`: of all its files; `parts`: of a multi-part one."""

    version: int
    size: int
    size_in_bytes: int
    num_of_add_files: int
    parts: int | None = None
    checksum: str | None = None


def point_at(storage: Storage, checkpoint: LastCheckpoint) -> None:
    """Replace the hint, unless it names a later version: a reader that follows it must not miss a newer checkpoint."""
    try:
        present = checkpoint_hint(storage.read(LAST_CHECKPOINT))
    except (FileNotFoundError, AccessDeniedError, UnsupportedTableError):
        present = None  # absent, a link out of the table, or too large: it is a hint only
    if present is None or present <= checkpoint.version:
        digest = checksum(msgspec.json.encode(checkpoint))
        storage.put(LAST_CHECKPOINT, msgspec.json.encode(msgspec.structs.replace(checkpoint, checksum=digest)))
