"""The id of a write to the files that its tasks left: those that Spark ended before they reported them."""

import logging
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from pyspark import TaskContext

from lakeview.model.errors import LakeviewError
from lakeview.storage import Storage

_PAGES = 500
"""Pages of a remote store that are looked through: of objects half a million, for a minute at most."""

_NAMES = 10
"""Files that a warning names."""

_LOG = logging.getLogger(__name__)


def is_repeated() -> bool:
    """True in a task that Spark has run before: what it wrote then may be there."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def remove_files(storage: Storage, prefix: str, *, one_folder: bool, besides: Iterable[str] = ()) -> None:
    """Remove the files of a write, whose names have `prefix` in them, and their temporary files. A warning names those
    that the store does not remove, or the prefix where it cannot list them.

    `besides`: paths of files that stay; `one_folder`: they lie in the root of the store. Files in folders of a remote
    store are found by a listing of all its files, up to _PAGES: where it has more, a warning says what may be left.
    """
    try:
        # a dot comes before it in a temporary file's name, and a hash where Iceberg spreads files without folders
        names = _names(storage, prefix, one_folder=one_folder)
        bases = {_base(path) for path in besides}  # which an id of its own makes unlike those of all other files
        leftovers = storage.delete_each(n for n in names if prefix in _base(n) and _base(n) not in bases)
    except (LakeviewError, OSError) as error:
        _LOG.warning(
            "the files of %s could not be listed (%s): files of the write that failed may be left, with %s in their "
            "names; vacuum removes them",
            storage.root,
            error,
            prefix,
        )
        return
    if leftovers:
        more = f" and {len(leftovers) - _NAMES:,} more with {prefix} in their names" * (len(leftovers) > _NAMES)
        _LOG.warning(
            "files that failed tasks wrote are left in %s: %s%s; vacuum removes them",
            storage.root,
            ", ".join(leftovers[:_NAMES]),
            more,
        )


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _names(storage: Storage, prefix: str, *, one_folder: bool) -> Iterator[str]:
    if not storage.remote:
        yield from storage.names()
    elif one_folder:
        yield from storage.list_from("", prefix)["name"]
    else:
        pages = storage.name_pages()
        yield from chain.from_iterable(islice(pages, _PAGES))
        if next(pages, None) is not None:
            _LOG.warning(
                "%s has so many files that not all were looked through: files of the write that failed may be left, "
                "with %s in their names; vacuum removes them",
                storage.root,
                prefix,
            )
