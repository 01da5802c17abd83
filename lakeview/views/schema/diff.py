"""Two schemas to the changes between them, and many to the life of each column.

A field is the same when its id is, or its physical name, or (where neither side has those) its name: so a rename is
told from a drop and an add. Nested fields are compared in structs, lists (`a.element`) and maps (`m.key`, `m.value`).
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import polars as pl

from lakeview.model.data_types import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.schema import Schema, leaf_name

SCHEMA_DIFF = pl.Schema(
    {
        "column": pl.String(),
        "change": pl.String(),
        "before": pl.String(),
        "after": pl.String(),
        "id": pl.Int64(),
        "breaks": pl.String(),
    }
)
"""One row a change. `column`: its path now (a dropped one's last); `change`: added, dropped, renamed, moved, type,
nullability, comment, default, metadata; `id`: the field id, if any; `breaks`: what fails because of it."""

_DEFAULT_KEYS = ("CURRENT_DEFAULT", "write-default", "initial-default")
"""Where a field's metadata records a default value."""

_UNSHOWN_KEYS = frozenset({"comment", *_DEFAULT_KEYS})
_UNSHOWN_PREFIXES = ("delta.columnMapping.", "parquet.field.", "PARQUET:")
"""Metadata that has rows of its own, or is the identity the fields were matched by."""

_WIDER = {
    "byte": {"short", "integer", "long", "float", "double"},
    "short": {"integer", "long", "float", "double"},
    "integer": {"long", "double"},
    "float": {"double"},
    "date": {"timestamp_ntz"},
}
"""Types that hold every value of the narrower one."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference at one place; `before_path` and `path` are where the field was and is."""

    kind: str
    before_path: Path | None
    path: Path | None
    before: str | None
    after: str | None
    id: int | None = None
    breaks: str = "nothing"
    field: Field | None = None


def diff_schemas(a: Schema, b: Schema) -> pl.DataFrame:
    """SCHEMA_DIFF from `a` (before) to `b` (after), in the order of `b`, without unchanged fields."""
    rows = [
        (leaf_name(c.path or c.before_path or ()), c.kind, c.before, c.after, c.id, c.breaks)
        for c in field_changes(a, b)
        if c.kind != "same"
    ]
    return pl.DataFrame(rows, schema=SCHEMA_DIFF, orient="row")


def field_changes(a: Schema, b: Schema) -> Iterator[Change]:
    """Every change between two schemas, and one `same` for each field (nested too) that is otherwise unchanged."""
    yield from _struct_changes(a.fields, b.fields, (), ())


def _struct_changes(a: Sequence[Field], b: Sequence[Field], above_a: Path, above_b: Path) -> Iterator[Change]:
    matches = _match(a, b)
    moved_fields = _moved_fields(matches, len(b))
    order_a = {i: a[i - 1].name if i else None for i in range(len(a))}
    for j, field in enumerate(b):
        path = (*above_b, field.name)
        if j not in matches:
            yield Change("added", None, path, None, str(field.type), field.id, _breaks_added(field), field)
            continue
        i = matches[j]
        before = a[i]
        changes = list(_own_changes(before, field, (*above_a, before.name), path))
        if j in moved_fields:
            places = _place(order_a[i]), _place(b[j - 1].name if j else None)
            changes.append(
                Change("moved", (*above_a, before.name), path, *places, field.id, "readers by position", field)
            )
        if not changes:
            changes = [
                Change("same", (*above_a, before.name), path, str(before.type), str(field.type), field.id, field=field)
            ]
        yield from changes
        yield from _nested_changes(before.type, field.type, (*above_a, before.name), path)
    for i in sorted(set(range(len(a))) - set(matches.values())):
        old = a[i]
        yield Change("dropped", (*above_a, old.name), None, str(old.type), None, old.id, "readers of it", old)


def _nested_changes(a: DataType, b: DataType, path_a: Path, path_b: Path) -> Iterator[Change]:
    match a, b:
        case StructType(before), StructType(after):
            yield from _struct_changes(before, after, path_a, path_b)
        case ArrayType(before_element, nulls_before), ArrayType(after_element, nulls_after):
            yield from _part_changes(
                "element", before_element, after_element, nulls_before, nulls_after, path_a, path_b
            )
        case MapType(key_a, value_a, nulls_before), MapType(key_b, value_b, nulls_after):
            yield from _part_changes("key", key_a, key_b, False, False, path_a, path_b)
            yield from _part_changes("value", value_a, value_b, nulls_before, nulls_after, path_a, path_b)
        case _:
            return


def _part_changes(
    part: str, a: DataType, b: DataType, nulls_a: bool, nulls_b: bool, path_a: Path, path_b: Path
) -> Iterator[Change]:
    """Changes of a list's element or a map's key or value; a part has no name to be renamed, no place to move."""
    before, after = Field(part, a, nulls_a), Field(part, b, nulls_b)
    changes = list(_own_changes(before, after, (*path_a, part), (*path_b, part)))
    yield from changes or [Change("same", (*path_a, part), (*path_b, part), str(a), str(b), field=after)]
    yield from _nested_changes(a, b, (*path_a, part), (*path_b, part))


def _own_changes(a: Field, b: Field, path_a: Path, path_b: Path) -> Iterator[Change]:
    def change(kind: str, before: str | None, after: str | None, breaks: str = "nothing") -> Change:
        return Change(kind, path_a, path_b, before, after, b.id, breaks, b)

    if a.name != b.name:
        yield change("renamed", a.name, b.name, "readers by name")
    if _shape(a.type) != _shape(b.type):
        yield change("type", str(a.type), str(b.type), _breaks_type(a.type, b.type))
    if a.nullable != b.nullable:
        breaks = "readers that expect no nulls" if b.nullable else "writers that leave it out"
        yield change("nullability", _nullability(a), _nullability(b), breaks)
    if a.comment != b.comment:
        yield change("comment", a.comment, b.comment)
    if _default(a) != _default(b):
        yield change("default", _default(a), _default(b))
    before, after = _shown_metadata(a), _shown_metadata(b)
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            yield change("metadata", _entry(key, before), _entry(key, after))


def _match(a: Sequence[Field], b: Sequence[Field]) -> dict[int, int]:
    """Index in `b` to index in `a`: by id, then by physical name, then by name where nothing says otherwise."""
    matches: dict[int, int] = {}
    matched_a: set[int] = set()
    # a table that gets name mapping later keeps its names as physical names
    for key in map(attrgetter, ("id", "stored_name", "name")):
        by_key: dict[object, int] = {}
        for i, f in enumerate(a):
            if i not in matched_a and (k := key(f)) is not None:
                by_key.setdefault(k, i)
        for j, f in enumerate(b):
            i = by_key.get(key(f), -1) if j not in matches else -1
            if i >= 0 and i not in matched_a and not _different(a[i], f):
                matches[j] = i
                matched_a.add(i)
    return matches


def _different(a: Field, b: Field) -> bool:
    """Ids or, where one is missing, physical names that both are recorded and differ."""
    if a.id is not None and b.id is not None:
        return a.id != b.id
    return a.physical_name is not None and b.physical_name is not None and a.physical_name != b.physical_name


def _moved_fields(matches: dict[int, int], width: int) -> set[int]:
    """Which fields of `b` moved: the fewest whose removal leaves the others in their old order."""
    order = [j for j in range(width) if j in matches]
    tails: list[int] = []  # tails[n]: the field that ends the best increasing run of length n + 1
    before: dict[int, int] = {}
    for j in order:
        at = bisect_left(tails, matches[j], key=matches.__getitem__)
        if at:
            before[j] = tails[at - 1]
        tails[at : at + 1] = [j]
    run: set[int] = set()
    last = tails[-1] if tails else None
    while last is not None:
        run.add(last)
        last = before.get(last)
    return set(order) - run


def _shape(type_: DataType) -> str:
    """What a type is without what it holds: parts of structs, lists and maps are compared on their own."""
    match type_:
        case StructType():
            return "struct"
        case ArrayType():
            return "array"
        case MapType():
            return "map"
        case _:
            return str(type_)


def _breaks_type(a: DataType, b: DataType) -> str:
    match a, b:
        case PrimitiveType(before), PrimitiveType(after) if after in _WIDER.get(before, ()):
            return "readers of the old type"
        case DecimalType(p, s), DecimalType(q, t) if t >= s and q - t >= p - s:
            return "readers of the old type"
        case _:
            return "readers; old files may not convert"


def _breaks_added(f: Field) -> str:
    return "nothing" if f.nullable or _default(f) is not None else "writers that leave it out"


def _nullability(f: Field) -> str:
    return "nullable" if f.nullable else "not null"


def _default(f: Field) -> str | None:
    for key in _DEFAULT_KEYS:
        if key in f.metadata:
            value: Any = f.metadata[key]
            return value if isinstance(value, str) else json.dumps(value, default=str)
    return None


def _shown_metadata(f: Field) -> dict[str, Any]:
    return {k: v for k, v in f.metadata.items() if k not in _UNSHOWN_KEYS and not k.startswith(_UNSHOWN_PREFIXES)}


def _entry(key: str, metadata: dict[str, Any]) -> str | None:
    return f"{key}: {json.dumps(metadata[key], default=str, ensure_ascii=False)}" if key in metadata else None


def _place(before: str | None) -> str:
    return "first" if before is None else f"after {before}"
