"""Which stores exclude a second writer of a file, and what is done on those that do not.

Delta's log asks a store for three things: a file appears whole or not at all, it is created by one writer only, and a
listing shows what was created. Every object store here gives the first and the third. The second is known of some
stores, is tried out on stores of S3's protocol, and is otherwise left to a commit coordinator or refused.
"""

import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias
from urllib.parse import urlsplit

from lakeview.model.errors import UnsupportedTableError
from lakeview.storage.coordinator import coordinator_of
from lakeview.storage.interface import Storage
from lakeview.storage.object_clients import ObjectPlace
from lakeview.storage.options import AZURE, COORDINATOR, GOOGLE, S3

KNOWN_HOSTS = ("amazonaws.com", "amazonaws.com.cn", "r2.cloudflarestorage.com")
"""Hosts of S3's protocol, and those below them, whose stores are known to refuse a conditional put over another file.
Azure's and Google's own stores are known as well."""


Create: TypeAlias = Callable[[str, bytes], None]
"""Puts a file if it is absent, by the store's own condition; FileExistsError if it is there."""


class Exclusion:
    """How files are created exclusively in one bucket. `options` are normal."""

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _proven: ClassVar[set[tuple[ObjectPlace, str | None]]] = set()

    def __init__(self, place: ObjectPlace, options: Mapping[str, Any], endpoint: str | None) -> None:
        self._place = place
        self._options = options
        self._endpoint = endpoint

    def put(self, store: Storage, create: Create, path: str, data: bytes) -> None:
        """Create a file whole, or raise FileExistsError. UnsupportedTableError where the store cannot exclude."""
        coordinator = coordinator_of(self._options.get(COORDINATOR))
        if coordinator is not None:
            coordinator.put_if_absent(store, path, data)
            return
        if provider := self._options.get("locking_provider"):
            raise UnsupportedTableError(
                f"writers of this table lock it by {provider}, which a conditional put does not respect",
                fix="leave the locking provider out once no writer needs it, or write with an engine that has it",
                place=path,
                kind="unsupported-store",
            )
        if not self._is_known() and not self._is_proven(store, create, path):
            raise _cannot_exclude(f"the store at {self._endpoint}", path)
        create(path, data)

    def _is_known(self) -> bool:
        if self._options.get("conditional_put") == "etag":  # the user says so, as deltalake asks it of them
            return True
        if self._options.get("conditional_put") in ("disabled", False):
            raise _cannot_exclude(f"the store of {self._place}", "")
        if self._place.kind == AZURE or (self._place.kind == GOOGLE and self._endpoint is None):
            return True
        host = urlsplit(self._endpoint or "").hostname
        return self._place.kind == S3 and (
            host is None or any(host == domain or host.endswith(f".{domain}") for domain in KNOWN_HOSTS)
        )

    def _is_proven(self, store: Storage, create: Create, path: str) -> bool:
        """Whether a second creation of one file is refused: tried once for each bucket, with a file of our own.

        Stores that do not know the condition ignore it and replace the file. A store that checks it, and does so apart
        from writing the file, passes: that is not to be seen from outside.
        """
        key = (self._place, self._endpoint)
        with self._lock:
            if key in self._proven:
                return True
            probe = f"{path.rpartition('/')[0]}/.lakeview-{uuid.uuid4().hex}.tmp".lstrip("/")
            create(probe, b"first")
            try:
                create(probe, b"second")
            except FileExistsError:
                self._proven.add(key)
                return True
            finally:
                store.delete(probe)
        return False


def create_by_coordinator(store: Storage, coordinator: object, name: str, path: str, data: bytes) -> None:
    """Create a file on a store that has no condition. UnsupportedTableError without a coordinator.

    `name`: of the store, for people.
    """
    commit_coordinator = coordinator_of(coordinator)
    if commit_coordinator is None:
        raise _cannot_exclude(name, path)
    commit_coordinator.put_if_absent(store, path, data)


def _cannot_exclude(name: str, path: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"{name} cannot create a file only if it is absent: two writers could both win a version",
        fix="give the storage option commit_coordinator, such as sqlite:///var/lib/lakeview/commits.db, to all writers",
        place=path or None,
        kind="unsupported-store",
    )
