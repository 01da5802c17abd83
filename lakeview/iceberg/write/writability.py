"""Whether this writer may commit to a table: what owns its metadata file, how the file is named, and the refusals."""

from __future__ import annotations

from collections.abc import Mapping

from lakeview.iceberg.metadata.documents import invalid
from lakeview.iceberg.metadata.locate import FOLDER, is_numbered_alone, metadata_number
from lakeview.iceberg.metadata.refs import MAIN
from lakeview.iceberg.state import State
from lakeview.iceberg.write.commits import Target
from lakeview.model.errors import UnsupportedTableError

_NUMBERS = 1 << 63
"""Numbers of snapshots are longs."""


def check_commits(table: Target, *, without_catalog: bool) -> None:
    """Refuses tables whose commits are not made by the next metadata file of their folder or by a catalog that takes
    changes: UnsupportedTableError for one of another catalog, one opened by a metadata file, and one that a catalog may
    own.

    `without_catalog`: the caller knows that no catalog owns it, although its files are named as catalogs name them.
    """
    state, address = table.state, table.address
    name = state.metadata_file.path.rpartition("/")[2]
    if table.pointer is not None:
        if table.pointer.takes_commits:
            return
        raise unsupported_table(
            f"{address} is a table of a catalog that lakeview only reads: it commits to REST catalogs alone",
            "catalog-table",
            "write it with an engine that commits to its catalog",
        )
    if state.place.explicit is not None:
        raise unsupported_table(
            f"{address} was opened by a metadata file, which never changes",
            "metadata-file",
            "open the table's folder",
        )
    if state.place.folder != FOLDER or metadata_number(name) is None:
        raise unsupported_table(
            f"the metadata file {name} of {address} has no number that the next one could follow",
            "metadata-name",
            "write it with the engine that owns it",
        )
    if not (without_catalog or is_numbered_alone(name)):
        raise unsupported_table(
            f"the metadata file {name} of {address} is named as catalogs name theirs: a catalog that owns the table "
            "would not see a commit to its folder, and would undo it",
            "catalog-may-own",
            "write it by its catalog; if none owns it, give without_catalog=True (for Spark the option withoutCatalog)",
        )


def check_continues(state: State, document: Mapping[str, object], rows: int) -> None:
    """Refuses metadata, `document` as recorded, that no snapshot of so many rows can follow.

    CorruptTableError where the branch main is not at the current snapshot ("this must be the same as the current ID of
    the main branch"), or a number has no next one.
    """
    metadata, path = state.metadata, state.metadata_file.path
    main = metadata.refs.get(MAIN)
    if main is not None and main.snapshot_id != metadata.current_snapshot_id:
        raise invalid(
            path, f"the branch main is at {main.snapshot_id}, and current-snapshot-id is {metadata.current_snapshot_id}"
        )
    next_row_id = document.get("next-row-id") or 0
    numbers = {
        "last-sequence-number": metadata.last_sequence_number + 1,
        "last-updated-ms": (metadata.last_updated_ms or 0) + 1,
        "next-row-id": (next_row_id if isinstance(next_row_id, int) else 0) + rows,
    }
    for name, following in numbers.items():
        if not 0 <= following < _NUMBERS:
            raise invalid(path, f"no snapshot can follow its {name}")


def not_honoured(name: str, text: str) -> UnsupportedTableError:
    """The refusal of a table that has a property of this value."""
    return UnsupportedTableError(
        f"{name} is {text!r}, which this writer would not honour",
        fix="write the table with the engine that set it",
        place=name,
        kind="unsupported-property",
    )


def unsupported_table(
    message: str, kind: str, fix: str = "write the table with the engine that owns it"
) -> UnsupportedTableError:
    """The refusal of a table for what it is."""
    return UnsupportedTableError(message, fix=fix, kind=kind)
