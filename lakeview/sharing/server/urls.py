"""Paths of a table to URLs that a recipient may read for a while: the store's own where it signs, else ours."""

from __future__ import annotations

from collections.abc import Sequence

from lakeview.sharing.server.lines import Url, quote_path
from lakeview.sharing.server.signing import FileSigner, Grant
from lakeview.storage import Storage
from lakeview.storage.byte_cache import ByteBoundedCache

_MAX_BYTES = 128 << 20  # 200,000 URLs


class StoreUrls:
    """URLs that stores signed, cached while they are fresh: signing one costs half a millisecond in boto3."""

    def __init__(self) -> None:
        self._urls: ByteBoundedCache[tuple[str, str, int], str] = ByteBoundedCache(_MAX_BYTES, len)

    def url(self, storage: Storage, path: str, expires: int, seconds: int) -> str | None:
        """The URL of a file; None if the store signs none. `expires` is the same moment for all of one window."""
        key = (storage.root, path, expires)
        url = self._urls.get(key)
        if url is None and (url := storage.signed_url(path, seconds)) is not None:
            self._urls.put(key, url)
        return url


def expiry(now: int, life: int) -> int:
    """When URLs given now end: at least `life` from now, the same moment within a quarter of it, so that answers of one
    window are alike and clients may keep what they have."""
    step = max(life // 4, 1)
    return (now // step + 1) * step + life


def url_of(storage: Storage, signer: FileSigner, grant: Grant, base: str, now: int, in_store: StoreUrls | None) -> Url:
    """Paths to URLs. `base`: where clients reach this server; `in_store`: where the store's own may be used."""

    def ours(paths: Sequence[str]) -> list[str]:
        start = f"{base}/files/{grant.table}/"
        queries = signer.queries(grant, paths)
        return [start + quote_path(path) + query for path, query in zip(paths, queries, strict=True)]

    def theirs(paths: Sequence[str]) -> list[str]:
        assert in_store is not None
        urls = [in_store.url(storage, path, grant.expires, grant.expires - now) for path in paths]
        return [url for url in urls if url is not None]

    if (
        in_store is None
        or not storage.remote
        or in_store.url(storage, "probe", grant.expires, grant.expires - now) is None
    ):
        return ours
    return theirs
