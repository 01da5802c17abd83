"""Whether commits to a table are made in its folder: what owns its current metadata file, and how the file is named."""

from __future__ import annotations

from lakeview.iceberg.metadata.locate import FOLDER, is_numbered_alone, metadata_number
from lakeview.iceberg.write.commits import Target
from lakeview.model.errors import UnsupportedTableError


def check_commits(table: Target, *, without_catalog: bool) -> None:
    """Refuses tables whose commits are not made by the next metadata file of their folder or by a catalog that takes
    changes: UnsupportedTableError for one of another catalog, one opened by a metadata file, and one that a catalog may
    own.

    `without_catalog`: the caller knows that no catalog owns it, although its files are named as catalogs name them.
    """
    state, address = table.state, table.address
    name = state.found.path.rpartition("/")[2]
    if table.pointer is not None:
        if table.pointer.takes_commits:
            return
        raise _refused(
            f"{address} is a table of a catalog that lakeview only reads: it commits to REST catalogs alone",
            "catalog-table",
            "write it with an engine that commits to its catalog",
        )
    if state.place.explicit is not None:
        raise _refused(
            f"{address} was opened by a metadata file, which never changes",
            "metadata-file",
            "open the table's folder",
        )
    if state.place.folder != FOLDER or metadata_number(name) is None:
        raise _refused(
            f"the metadata file {name} of {address} has no number that the next one could follow",
            "metadata-name",
            "write it with the engine that owns it",
        )
    if not (without_catalog or is_numbered_alone(name)):
        raise _refused(
            f"the metadata file {name} of {address} is named as catalogs name theirs: a catalog that owns the table "
            "would not see a commit to its folder, and would undo it",
            "catalog-may-own",
            "write it by its catalog; if none owns it, give without_catalog=True (for Spark the option withoutCatalog)",
        )


def _refused(message: str, kind: str, fix: str) -> UnsupportedTableError:
    return UnsupportedTableError(message, fix=fix, kind=kind)
