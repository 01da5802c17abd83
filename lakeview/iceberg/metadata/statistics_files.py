"""Statistics files as the metadata lists them to STATISTICS_FILES (iceberg spec, Table Statistics).

They only inform: whatever is odd about one is shown as unknown, and no read depends on them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import polars as pl

from lakeview.iceberg.metadata.locations import Locations
from lakeview.iceberg.metadata.specs import column_names
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.model.errors import LakeviewError
from lakeview.model.frames import STATISTICS_FILES
from lakeview.storage import Storage

_I64 = 2**63 - 1


def statistics_files(metadata: Metadata, storage: Storage, locations: Locations) -> pl.DataFrame:
    """STATISTICS_FILES, as the metadata lists them; asks the store once for each file whether it is there."""
    names = column_names(metadata)
    present: dict[str, bool | None] = {}
    rows = []
    for kind, documents in (("table", metadata.statistics), ("partition", metadata.partition_statistics)):
        for document in documents:
            path = document.get("statistics-path")
            if not isinstance(path, str):
                continue
            if path not in present:
                present[path] = None
                with suppress(LakeviewError):  # outside the allowed places, or a store that does not answer
                    present[path] = storage.exists(locations.resolve(path))
            head = (path, _whole(document.get("snapshot-id")), kind)
            tail = (_count(document.get("file-size-in-bytes")), present[path])
            rows += [(*head, *blob, *tail) for blob in _blobs(document, names)]
    return pl.DataFrame(rows, schema=STATISTICS_FILES, orient="row")


def _blobs(
    document: Mapping[str, Any], names: Mapping[int, str]
) -> Iterator[tuple[str | None, Sequence[str] | None, int | None]]:
    """Type, columns and distinct values of each blob; one row of unknowns for a file that lists none."""
    blobs = document.get("blob-metadata")
    objects = [b for b in blobs if isinstance(b, dict)] if isinstance(blobs, list) else []
    for blob in objects:
        fields, properties = blob.get("fields"), blob.get("properties")
        columns = [names.get(i, f"column {i}") for i in fields if type(i) is int] if isinstance(fields, list) else []
        ndv = properties.get("ndv") if isinstance(properties, dict) else None
        type_ = blob.get("type")
        yield type_ if isinstance(type_, str) else None, columns, _count(ndv)
    if not objects:
        yield None, None, None


def _count(value: Any) -> int | None:
    """As `_whole`; None for a count below zero too."""
    count = _whole(value)
    return None if count is None or count < 0 else count


def _whole(value: Any) -> int | None:
    """A count of 64 bits, as a number or as text; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and -_I64 - 1 <= value <= _I64 else None
