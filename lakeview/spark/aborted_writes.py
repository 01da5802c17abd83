"""The id of a write that failed to the files that its tasks left: those that Spark ended before they reported them."""

from contextlib import suppress

from lakeview.model.errors import LakeviewError
from lakeview.storage import Storage


def remove_files(storage: Storage, prefix: str, *, one_folder: bool) -> None:
    """Remove the files of a write, whose names have `prefix` in them, and their temporary files; errors of the store
    leave files.

    `one_folder`: they lie in the root of the store. Files in folders are found in local stores alone: in others a
    listing of the whole table may take minutes.
    """
    if storage.remote and not one_folder:
        return
    with suppress(LakeviewError, OSError):
        names = storage.list_from("", prefix)["name"] if storage.remote else storage.names()
        for name in names:
            # a dot comes before it in a temporary file's name, and a hash where Iceberg spreads files without folders
            if prefix in name.rpartition("/")[2]:
                storage.delete(name)
