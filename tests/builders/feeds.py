"""Tables that record their changes, and their changes as tuples."""

from __future__ import annotations

from typing import Any

from lakeview.model.frames import CHANGES
from tests.builders.actions import Action, add, metadata, protocol, remove
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table
from tests.builders.vectors import Descriptor

FED = {"delta.enableChangeDataFeed": "true"}
Change = tuple[Any, ...]


def feed(history: DeltaHistory, columns: dict[str, Any] | None = None, **more: Any) -> DeltaHistory:
    """The first commit of a table that records changes."""
    return history.commit(protocol(1, 4), metadata(columns or {"id": "long"}, properties=dict(FED), **more))


def changes(history: DeltaHistory, start: int, end: int | None = None) -> list[Change]:
    """(kind, version, the table's columns...), sorted."""
    rows = open_delta_table(history).changes(start, end).drop("_commit_timestamp").collect()
    own = [c for c in rows.columns if c not in CHANGES]
    return sorted(rows.select("_change_type", "_commit_version", *own).rows(), key=repr)


def of_ids(kind: str, version: int, *ids: int) -> list[Change]:
    """Changes of rows with these ids, as `changes` gives them."""
    return [(kind, version, i) for i in ids]


def ids_file(history: DeltaHistory, name: str, *ids: int, **more: Any) -> Action:
    """A data file with these ids, and its add action."""
    return history.data(name, {"id": list(ids)}, stats={"numRecords": len(ids)}, **more)


def with_vectors(history: DeltaHistory) -> DeltaHistory:
    """A table that records changes and has deletion vectors; its file `f` holds rows 0 to 4."""
    features = ["deletionVectors", "changeDataFeed"]
    history.commit(
        protocol(3, 7, readerFeatures=features[:1], writerFeatures=features),
        metadata({"id": "long"}, properties=dict(FED)),
    )
    return history.commit(ids_file(history, "f", 0, 1, 2, 3, 4))


def move(old: Descriptor | None, new: Descriptor | None) -> list[Action]:
    """The file removed with one vector and added with another."""
    return [add("f", records=5, **masked(new)), remove("f", **masked(old))]


def masked(vector: Descriptor | None) -> dict[str, Any]:
    """What an action of a file with this vector has beside the rest."""
    return {} if vector is None else {"deletionVector": vector}
