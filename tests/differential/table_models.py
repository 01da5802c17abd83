"""Stories to Delta tables that deltalake cannot write: deletion vectors, mapped columns, checkpoints of every kind.

The files are made by pyarrow, pyroaring and json; the rows that must be found at each version are kept beside them.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyroaring
from hypothesis import strategies as st

from tests.builders.actions import Action, info, metadata
from tests.builders.history import CHECKPOINT_SHAPE, DeltaHistory, log_name, parquet_actions
from tests.builders.mapped import stored_field
from tests.builders.vectors import Descriptor, inline, portable, relative, vector_file

PARTS = ("a", "b c", "x=1%/2", None)
_FEATURES = ("columnMapping", "deletionVectors", "v2Checkpoint")
_PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": list(_FEATURES), "writerFeatures": list(_FEATURES),
    }
}  # fmt: skip
_VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }.items()
)
_SHAPE = {
    **CHECKPOINT_SHAPE,
    "add": CHECKPOINT_SHAPE["add"] | {"deletionVector": _VECTOR},
    "remove": CHECKPOINT_SHAPE["remove"] | {"deletionVector": _VECTOR},
    "checkpointMetadata": {"version": pa.int64()},
    "sidecar": {"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()},
}
_TOP = {kind: _SHAPE[kind] for kind in ("protocol", "metaData", "checkpointMetadata", "sidecar")}
_FILES = {kind: _SHAPE[kind] for kind in ("add", "remove")}

Row = dict[str, Any]


@dataclass
class Column:
    """A column of the table: its field id, its logical name, and its physical one, which only a mapped column has."""

    id: int
    name: str
    physical: str
    type: str
    mapped: bool

    @property
    def _inside(self) -> tuple[int, str]:
        """Field id and physical name of the one field that a struct has."""
        return 1000 + self.id, f"col-{1000 + self.id}" if self.mapped else "in"

    @property
    def arrow(self) -> pa.DataType:
        """Its type in data files."""
        if self.type == "struct":
            return pa.struct([stored_field(pa.int64(), *self._inside)])
        return {"long": pa.int64(), "string": pa.string()}[self.type]

    @property
    def json(self) -> dict[str, Any]:
        """Its field in the schemaString."""
        kind: Any = self.type
        if self.type == "struct":
            kind = {"type": "struct", "fields": [self._field("in", "long", *self._inside)]}
        return self._field(self.name, kind, self.id, self.physical)

    def _field(self, name: str, kind: Any, number: int, physical: str) -> dict[str, Any]:
        ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical} if self.mapped else {}
        return {"name": name, "type": kind, "nullable": True, "metadata": ids}

    def stored(self, value: Any) -> Any:
        """A value as data files hold it."""
        return {self._inside[1]: value["in"]} if self.type == "struct" and value is not None else value


@dataclass
class DataFile:
    """A file: its rows by field id, those that are deleted, and the add action that the log holds of it now."""

    rows: list[dict[int, Any]]
    deleted: set[int]
    action: dict[str, Any]


@dataclass
class TableModel:
    """A table while it is being told. `expected`: for each version its rows, by logical names."""

    history: DeltaHistory
    mode: str
    partitioned: bool
    columns: list[Column] = field(default_factory=list)
    files: list[DataFile] = field(default_factory=list)
    removed: list[Action] = field(default_factory=list)
    expected: list[list[Row]] = field(default_factory=list)
    names: list[list[str]] = field(default_factory=list)
    next_id: int = 1
    number: int = 0

    def begin(self) -> None:
        """The first commit: id, part, a text and a struct."""
        for name, kind in (("id", "long"), ("part", "string"), ("text", "string"), ("inner", "struct")):
            self._column(name, kind)
        self._commit("CREATE TABLE", _PROTOCOL, self._metadata())

    # -- steps

    def append(self, seed: int) -> None:
        """New rows, a file for each partition."""
        rows = [self._row(seed * 100 + i, seed + i) for i in range(seed % 5 + 1)]
        self._commit("WRITE", *self._write(rows))

    def delete(self, seed: int) -> None:
        """Rows deleted by vectors; a file without rows left is removed."""
        divisor, actions = seed % 4 + 2, []
        for file in list(self.files):
            positions = {i for i, row in enumerate(file.rows) if row[1] is not None and row[1] % divisor == 1}
            if positions - file.deleted:
                actions += self._masked(file, file.deleted | positions, seed)
        self._commit("DELETE", *actions)

    def update(self, seed: int) -> None:
        """Rows deleted by vectors and written anew in the same commit."""
        actions, rows = [], []
        for file in list(self.files):
            hit = {
                i for i, row in enumerate(file.rows) if i not in file.deleted and (row[1] or 0) % (seed % 3 + 2) == 0
            }
            if hit:
                rows += [{**file.rows[i], 3: f"updated {seed}"} for i in sorted(hit)]
                actions += self._masked(file, file.deleted | hit, seed)
        self._commit("UPDATE", *self._write([row for row in rows if 3 in {c.id for c in self.columns}]), *actions)

    def compact(self, _: int) -> None:
        """All files into one for each partition, the vectors purged."""
        rows = [row for file in self.files for i, row in enumerate(file.rows) if i not in file.deleted]
        removals = [self._remove(file, data_change=False) for file in self.files]
        self.files = []
        adds = self._write(rows)
        for action in adds:
            action["add"]["dataChange"] = False
        self._commit("OPTIMIZE", *adds, *removals)

    def restore(self, _: int) -> None:
        """Every vector taken away: the rows come back."""
        actions = [action for file in list(self.files) if file.deleted for action in self._masked(file, set(), 0)]
        self._commit("RESTORE", *actions)

    def add_column(self, seed: int) -> None:
        """A column that older files do not have."""
        self._column(f"new {self.next_id}.`{seed}", ("long", "struct")[seed % 2])
        self._commit("ADD COLUMNS", self._metadata())

    def rename_column(self, seed: int) -> None:
        """Another logical name for a column; files stay as they are."""
        column = self.columns[seed % len(self.columns)]
        if column.name != "part":
            column.name = f"renamed {self.number}.{seed}"
        self._commit("RENAME COLUMN", self._metadata())

    def drop_column(self, seed: int) -> None:
        """A column less; files stay as they are."""
        columns = [c for c in self.columns if c.id in (1, 2, 3) or c.id % 3 != seed % 3]
        self.columns = columns
        self._commit("DROP COLUMNS", self._metadata())

    def checkpoint(self, seed: int) -> None:
        """A checkpoint of one of the kinds; the commits before it go for some seeds."""
        actions = [_PROTOCOL, self._metadata(), *({"add": file.action} for file in self.files), *self.removed]
        version, history = self.history.version, self.history
        stem = f"checkpoint.{uuid.UUID(int=seed + 2**64 * self.number)}"
        if seed % 4 < 2:
            history.checkpoint(actions=actions, shape=_SHAPE, parts=(None, 3)[seed % 2])
        elif seed % 4 == 2:
            lines = [{"checkpointMetadata": {"version": version}}, *actions]
            history.write(log_name(version, f"{stem}.json"), "\n".join(json.dumps(line) for line in lines).encode())
        else:
            self._sidecars(version, stem, actions)
        if seed % 3 == 0:
            history.without(*(v for v in sorted(history.actions) if v < version))
            history.actions = {version: history.actions[version]}

    # -- what they are made of

    def _sidecars(self, version: int, stem: str, actions: list[Action]) -> None:
        tops: list[Action] = [{"checkpointMetadata": {"version": version}}, *actions[:2]]
        for half in (actions[2::2], actions[3::2]):
            name = f"{uuid.UUID(int=version * 2 + len(tops))}.parquet"
            data = parquet_actions(half, _FILES)
            self.history.write(f"_delta_log/_sidecars/{name}", data)
            tops.append({"sidecar": {"path": name, "sizeInBytes": len(data), "modificationTime": 1_700_000_000_000}})
        self.history.write(log_name(version, f"{stem}.parquet"), parquet_actions(tops, _TOP))

    def _column(self, name: str, kind: str) -> None:
        mapped = self.mode != "none"
        self.columns.append(Column(self.next_id, name, f"col-{self.next_id}" if mapped else name, kind, mapped))
        self.next_id += 1

    def _metadata(self) -> Action:
        schema = json.dumps({"type": "struct", "fields": [column.json for column in self.columns]})
        properties: dict[str, str | None] = {
            "delta.columnMapping.mode": self.mode,
            "delta.columnMapping.maxColumnId": str(1000 + self.next_id),
            "delta.enableDeletionVectors": "true",
        }
        return metadata(schema=schema, properties=properties, partition_by=("part",) if self.partitioned else ())

    def _row(self, id_: int, n: int) -> dict[int, Any]:
        values: dict[int, Any] = {1: id_, 2: PARTS[n % len(PARTS)], 3: (None, "", "x\U0001f600")[n % 3]}
        number = None if n % 4 == 0 else n
        for column in self.columns[3:]:
            values[column.id] = number if column.type == "long" else ({"in": number} if n % 5 else None)
        return values

    def _write(self, rows: list[dict[int, Any]]) -> list[Action]:
        parts = {row[2] for row in rows} if self.partitioned else {None}
        actions = []
        for part in sorted(parts, key=str):
            mine = [row for row in rows if not self.partitioned or row[2] == part]
            if mine:
                actions.append(self._data_file(mine, part))
        return actions

    def _data_file(self, rows: list[dict[int, Any]], part: str | None) -> Action:
        columns_written = [c for c in self.columns if not (self.partitioned and c.name == "part")]
        fields = [stored_field(c.arrow, c.id, c.physical) for c in columns_written]
        arrays = [
            pa.array([c.stored(row.get(c.id)) for row in rows], f.type)
            for c, f in zip(columns_written, fields, strict=True)
        ]
        self.number += 1
        physical = next(c.physical for c in self.columns if c.name == "part")
        partition = dict[str, str | None]({physical: part} if self.partitioned else ())
        action = self.history.data(
            f"f{self.number}.parquet",
            pa.Table.from_arrays(arrays, schema=pa.schema(fields)),
            stats={"numRecords": len(rows)},
            partition=partition,
        )
        self.files.append(DataFile(rows, set(), action["add"]))
        return action

    def _masked(self, file: DataFile, deleted: set[int], seed: int) -> list[Action]:
        """The file with these rows deleted: its new add, and the remove of the old one."""
        removal = self._remove(file)
        if len(deleted) == len(file.rows):
            self.files.remove(file)
            return [removal]
        file.deleted = deleted
        file.action = {k: v for k, v in file.action.items() if k != "deletionVector"}
        if deleted:
            file.action["deletionVector"] = self._vector(deleted, seed)
        self.removed = [r for r in self.removed if _key(r["remove"]) != _key(file.action)]
        # the order of actions in a commit means nothing
        return [{"add": file.action}, removal] if seed % 2 else [removal, {"add": file.action}]

    def _remove(self, file: DataFile, *, data_change: bool = True) -> Action:
        identity = {k: v for k, v in file.action.items() if k in ("path", "partitionValues", "size", "deletionVector")}
        removal = {"remove": {**identity, "deletionTimestamp": 1_900_000_000_000, "dataChange": data_change}}
        self.removed.append(removal)
        return removal

    def _vector(self, deleted: set[int], seed: int) -> Descriptor:
        self.number += 1
        data = portable(deleted, runs=seed % 3 == 0)
        if seed % 2:
            return inline(data, len(deleted))
        name, prefix = uuid.UUID(int=self.number), ("", "Ab")[seed % 4 // 2]
        whole, offsets = vector_file(portable(pyroaring.BitMap64([7])), data)
        self.history.write(f"{prefix and prefix + '/'}deletion_vector_{name}.bin", whole)
        return relative(name, data, len(deleted), offset=offsets[1], prefix=prefix)

    def _commit(self, operation: str, *actions: Action) -> None:
        self.history.commit(info(operation=operation, timestamp=1_772_352_000_000 + self.history.version), *actions)
        live = [row for file in self.files for i, row in enumerate(file.rows) if i not in file.deleted]
        self.expected.append([{c.name: row.get(c.id) for c in self.columns} for row in live])
        self.names.append([c.name for c in self.columns])


def _key(action: dict[str, Any]) -> tuple[str, str]:
    return action["path"], json.dumps(action.get("deletionVector"), sort_keys=True)


STEPS = (
    "append", "append", "delete", "delete", "update", "compact", "restore",
    "add_column", "rename_column", "drop_column", "checkpoint",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What is to be built: mapping mode, partitioning, and the steps with their seeds."""

    mode: str
    partitioned: bool
    steps: tuple[tuple[str, int], ...]

    def build(self, address: str) -> TableModel:
        """The table, told to its end."""
        table = TableModel(DeltaHistory(address), self.mode, self.partitioned)
        table.begin()
        for what, seed in self.steps:
            getattr(table, what)(seed)
        return table


def plans(max_steps: int) -> st.SearchStrategy[Plan]:
    """Plans of up to so many steps; columns are renamed and dropped only where they are mapped."""
    any_step = st.tuples(st.sampled_from(STEPS), st.integers(0, 60))
    steps = st.lists(any_step, min_size=1, max_size=max_steps)
    plain = steps.map(lambda all_steps: tuple(s for s in all_steps if s[0] not in ("rename_column", "drop_column")))
    mapped = st.builds(Plan, st.sampled_from(["name", "id"]), st.booleans(), steps.map(tuple))
    return st.one_of(mapped, mapped, st.builds(Plan, st.just("none"), st.booleans(), plain))
