"""Where the fields of a schema lie in a file: by name, or by the field id that Parquet records."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

from lakeview.model.data_types import Field

FIELD_ID = b"PARQUET:field_id"
"""The key in the metadata of Arrow's fields of the field id that Parquet records."""

Match = Literal["name", "id"]
"""How the fields of a schema are found in a file: by (physical) name, or by the field id that Parquet records."""


def field_places(
    file_fields: Sequence[pa.Field], table_fields: Sequence[Field], match: Match = "name"
) -> list[int | None]:
    """Where in a file, or in one of its structs, each field lies; None for one that is not there.

    By name: exactly, else ignoring case ("unique ignoring case"). A physical name that column mapping made up is only
    matched exactly. By id: the Parquet field id; a column of the format's own has none and goes by its name.
    ArrowInvalid for one that is there twice, and for fields without ids ("readers must refuse to read that file or
    return nulls for each column": nulls would pass for data).
    """
    if match == "id":
        return _by_id(file_fields, table_fields)
    exact = {f.name: i for i, f in enumerate(file_fields)}
    by_folded_name: dict[str, int] = {}
    for i, f in enumerate(file_fields):
        by_folded_name.setdefault(f.name.casefold(), i)
    name_counts = Counter(f.name for f in file_fields)
    folded_counts = Counter(name.casefold() for name in name_counts)
    places = []
    for field in table_fields:
        name = field.stored_name
        place = exact.get(name)
        if place is None and name == field.name:
            place = by_folded_name.get(name.casefold())
            if folded_counts[name.casefold()] > 1:
                raise pa.ArrowInvalid(f"it holds {folded_counts[name.casefold()]} columns called {name}, case aside")
        if place is not None and name_counts[file_fields[place].name] > 1:
            name = file_fields[place].name
            raise pa.ArrowInvalid(f"it holds {name_counts[name]} columns called {name}")
        places.append(place)
    return places


def _by_id(file_fields: Sequence[pa.Field], table_fields: Sequence[Field]) -> list[int | None]:
    ids: dict[int, int] = {}
    for i, f in enumerate(file_fields):
        number = (f.metadata or {}).get(FIELD_ID, b"")
        if not number.isdigit():
            continue
        if int(number) in ids:
            raise pa.ArrowInvalid(f"it holds two columns with the field id {int(number)}")
        ids[int(number)] = i
    if file_fields and not ids and any(f.id is not None for f in table_fields):
        raise pa.ArrowInvalid("it has no field ids, by which column mapping finds its columns")
    names = {f.name: i for i, f in enumerate(file_fields)}
    return [names.get(f.stored_name) if f.id is None else ids.get(f.id) for f in table_fields]
