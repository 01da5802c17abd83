"""An address to bytes: one Storage over local folders, memory and every fsspec store."""

import os
from collections.abc import Mapping
from typing import Any

from lakeview.model.addresses import below, is_local, normalise
from lakeview.model.arguments import address_of, mapping_of
from lakeview.model.config import Config, settings
from lakeview.model.errors import AccessDeniedError
from lakeview.storage.configured import configured_options, store_kind
from lakeview.storage.interface import LISTING, NO_LISTING, Entry, Storage, back_off
from lakeview.storage.local import LocalStorage
from lakeview.storage.new_file import NewFile
from lakeview.storage.objects import ObjectStorage
from lakeview.storage.options import KINDS, combine_options
from lakeview.storage.remote import FsspecStorage
from lakeview.storage.web import WebStorage

__all__ = [
    "KINDS", "LISTING", "NO_LISTING", "Entry", "FsspecStorage", "LocalStorage", "NewFile", "ObjectStorage",
    "Storage", "WebStorage", "back_off", "combine_options", "open_storage", "store_kind",
]  # fmt: skip

_WEB = ("http", "https")


def open_storage(
    address: str | os.PathLike[str],
    *,
    options: Mapping[str, Any] | None = None,
    config: Config | None = None,
    decode: bool = False,
) -> Storage:
    """The store below an address, its options those given over the configured ones.

    AccessDeniedError if roots are configured and the address lies outside them.
    """
    config = config or settings()
    root = normalise(address_of(address), decode=decode)
    if config.roots and not any(_inside(root, normalise(r)) for r in config.roots):
        raise AccessDeniedError(
            f"{root} lies outside the allowed roots",
            fix="open a table below one of them, or add its folder to LAKEVIEW_ROOTS",
            place=root,
            kind="outside-roots",
        )
    if is_local(root):
        return LocalStorage(root, config)
    scheme = root.partition("://")[0]
    store = ObjectStorage if scheme in KINDS else WebStorage if scheme in _WEB else FsspecStorage
    return store(
        root,
        config,
        configured_options(root, mapping_of({} if options is None else options, "storage_options"), config),
    )


def _inside(address: str, root: str) -> bool:
    if is_local(address) and is_local(root):
        return below(os.path.realpath(address), os.path.realpath(root))
    return below(address, root)
