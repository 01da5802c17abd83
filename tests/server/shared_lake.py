"""A lake to share, told by builders, and the configuration of a server that shares it."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from tests.builders.actions import add, cdc, metadata, protocol, remove
from tests.builders.feeds import feed, ids_file
from tests.builders.history import DeltaHistory
from tests.builders.mapped import field as mapped_field
from tests.builders.mapped import mapped
from tests.builders.vectors import portable, relative, vector_file

MONTHS = 6
ODD = "region=a%20b%2Fc%3Dd%25%C3%A9/ü #?&+.parquet"
TABLE = "shares/lake/schemas/default/tables/{}"


def months(folder: Path) -> DeltaHistory:
    """Six files of one month each, two rows in every one: ids 0 to 11, in two commits of three files."""
    history = DeltaHistory(folder)
    history.commit(protocol(), metadata({"id": "long", "city": "string", "month": "integer"}, partition_by=("month",)))
    for commit in (range(3), range(3, MONTHS)):
        adds = []
        for month in commit:
            ids = [2 * month, 2 * month + 1]
            stats = {"numRecords": 2, "minValues": {"id": ids[0]}, "maxValues": {"id": ids[1]}, "nullCount": {"id": 0}}
            adds.append(
                history.data(
                    f"month={month}/part-{month}.parquet",
                    {"id": ids, "city": [f"c{i}" for i in ids]},
                    stats=stats,
                    partition={"month": str(month)},
                )
            )
        history.commit(*adds)
    return history


def fed(folder: Path) -> DeltaHistory:
    """A table that records changes: ids 1 2, then 3, then 2 goes as change data says, then only a compaction."""
    history = feed(DeltaHistory(folder))
    first, second = ids_file(history, "a.parquet", 1, 2), ids_file(history, "b.parquet", 3)
    history.commit(first)
    history.commit(second)
    live_file = ids_file(history, "c.parquet", 1)
    changed = history.data("_change_data/cdc-1.parquet", {"id": [2], "_change_type": ["delete"]})
    history.commit(remove("a.parquet", partitionValues={}, size=100), live_file, cdc(changed))
    packed = ids_file(history, "d.parquet", 1, 3, data_change=False)
    return history.commit(
        remove("b.parquet", data_change=False, partitionValues={}, size=1),
        remove("c.parquet", data_change=False, partitionValues={}, size=1),
        packed,
    )


def with_vector(folder: Path) -> DeltaHistory:
    """A table of five rows of which two are deleted by a vector in a file of its own."""
    history = DeltaHistory(folder)
    features = ["deletionVectors"]
    history.commit(protocol(3, 7, readerFeatures=features, writerFeatures=features), metadata({"id": "long"}))
    name = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
    data = portable([1, 3])
    file, (offset,) = vector_file(data)
    history.write(f"deletion_vector_{name}.bin", file)
    vector = relative(name, data, 2, offset=offset)
    return history.commit(ids_file(history, "f.parquet", 0, 1, 2, 3, 4, deletionVector=vector))


def with_mapping(folder: Path) -> DeltaHistory:
    """A table whose columns have other names in its files."""
    history = DeltaHistory(folder)
    history.commit(*mapped("name", mapped_field("id", "long", 1)))
    return history.commit(history.data("m.parquet", {"col-1": [1, 2]}, stats={"numRecords": 2}))


def build(folder: Path) -> None:
    """The lake: a folder a table."""
    months(folder / "months")
    fed(folder / "fed")
    with_vector(folder / "vectors")
    with_mapping(folder / "mapped")
    DeltaHistory(folder / "empty").create()
    odd = DeltaHistory(folder / "odd").create()
    odd.write(ODD, b"odd").commit(add(quote(ODD)))
    broken = DeltaHistory(folder / "broken").create()
    broken.raw_commit(b'{"metaData": nonsense\n')


def configuration(lake: Path, **more: Any) -> dict[str, Any]:
    """Two shares: `lake` with everything, `other` with one table of the same name; two recipients."""
    tables: list[dict[str, Any]] = [
        {"name": name, "location": str(lake / name), "historyShared": name not in ("vectors", "mapped")}
        for name in ("months", "fed", "vectors", "mapped", "empty", "broken", "odd")
    ]
    tables.append(
        {"name": "some", "location": str(lake / "months"), "view": {"columns": ["id", "month"], "where": "id < 3"}}
    )
    private = {"name": "Secret", "location": str(lake / "fed"), "id": "f0000000-0000-4000-8000-000000000001"}
    return {
        "version": 1,
        "shares": [
            {"name": "lake", "schemas": [{"name": "default", "tables": tables}]},
            {"name": "other", "schemas": [{"name": "default", "tables": [private]}]},
        ],
        "recipients": [{"name": "ann", "shares": ["lake"]}, {"name": "bob", "shares": ["other"]}],
        "tokens": "tokens.json",
        "keys": "keys.json",
        "views": "views",
        "port": 0,
        **more,
    }


def write_configuration(path: Path, document: dict[str, Any]) -> Path:
    """The configuration as YAML."""
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path
