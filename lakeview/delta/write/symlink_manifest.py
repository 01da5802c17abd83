"""Lists of data files for engines that read Parquet and no log: Hive's symlink format, for Presto, Athena and Hive."""

from collections import defaultdict

from lakeview.delta.features import column_mapping_mode
from lakeview.delta.log.replay import Replay
from lakeview.delta.write.first_commit import absolute_path
from lakeview.delta.write.target import Target
from lakeview.delta.write.writer import partition_folder
from lakeview.model.errors import UnsupportedTableError
from lakeview.storage import open_storage

FOLDER = "_symlink_format_manifest"
"""Where the manifests are, below the root of the table: one, or one for each partition in a folder of its own."""

_NAME = "manifest"


def write_manifests(table: Target) -> list[str]:
    """Write the manifests of the latest version, each in place of the one before it, then delete those of partitions
    that have no files any more; returns the paths that were written.

    UnsupportedTableError for a table of which files alone do not give the rows: deletion vectors, mapped columns;
    AccessDeniedError for a link that leads out of the table.
    """
    table.refresh()
    state = table.state()
    root = table.storage.root
    _check_plain(state, root)
    columns = state.metadata.partition_columns or []
    lines: defaultdict[str, list[str]] = defaultdict(list)
    if not columns:
        lines[_NAME] = []
    for path, values in state.adds(["path", "partition_values"]).select("path", "partition_values").iter_rows():
        texts = dict(values or {})
        folders = [partition_folder(name, texts.get(name)) for name in columns]
        lines["/".join([*folders, _NAME])].append(_line(absolute_path(path, root), root))
    folder = open_storage(f"{root}/{FOLDER}", options=table.storage.options, config=table.storage.config)
    old = {name for name in folder.walk()["name"] if name.rpartition("/")[2] == _NAME}
    # by paths of the table, below which no link leads out of it
    for name, paths in lines.items():
        table.storage.put(f"{FOLDER}/{name}", "".join(f"{path}\n" for path in sorted(paths)).encode())
    for name in sorted(old - lines.keys()):
        table.storage.delete(f"{FOLDER}/{name}")
    return sorted(lines)


def _line(path: str, root: str) -> str:
    if "\n" in path or "\r" in path:
        raise _refusal(root, f"has a file {path!r}, which no line can hold", "write this file again, by an update")
    return path


def _check_plain(state: Replay, root: str) -> None:
    if column_mapping_mode(state.table_protocol, state.properties) != "none":
        raise _refusal(root, "maps its columns, whose names are others in files", "copy the rows into a plain table")
    if state.adds(["vector"])["vector"].is_not_null().any():
        raise _refusal(
            root,
            "has deletion vectors, and readers of its files alone would find the deleted rows",
            "set delta.enableDeletionVectors to false, and write these files again, such as by an update of their rows",
        )


def _refusal(root: str, why: str, fix: str) -> UnsupportedTableError:
    return UnsupportedTableError(f"{root} {why}", fix=fix, place=root, kind="no-symlink-manifest")
