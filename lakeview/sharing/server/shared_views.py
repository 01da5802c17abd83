"""A view on a table to a table of its own: columns and rows chosen once for each version of the base, then shared.

A share hands out whole files, so what is hidden must not be in them. The copy is a Delta table in the folder of views;
its log says by an application's transaction which version of the base it holds, so file ids last as long as that does.
"""

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import polars.selectors as cs

from lakeview.delta.sharing import DeltaTable, delete_old
from lakeview.discovery import create_table, open_table
from lakeview.model.clock import Clock, system_clock
from lakeview.model.config import settings
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import CommitConflictError, InvalidRequestError, NotATableError, UnsupportedTableError
from lakeview.model.schema import Schema
from lakeview.model.table import Table
from lakeview.predicates import predicate
from lakeview.predicates.evaluation import not_evaluated
from lakeview.sharing.server.delta_lines import public_field
from lakeview.sharing.server.delta_source import DeltaSource
from lakeview.sharing.server.refresh import look_again
from lakeview.sharing.server.settings import TableEntry, ViewEntry

_APPLICATION = "lakeview-view"
_ENGINE = "lakeview share"
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`")
_CLOCK = re.compile(r"\b(?:current_(?:date|time|timestamp)\b|localtime(?:stamp)?\b|now\s*\()", re.IGNORECASE)
"""Words that mean another moment each day: a copy would go on showing what its condition hides by then."""

_TIDY_EVERY = 10
"""After so many copies the old ones are looked at."""


class ViewSource(DeltaSource):
    """A view on a table; versions are those of its copy."""

    def __init__(self, entry: TableEntry, base: Table, folder: str | None, clock: Clock = system_clock) -> None:
        if entry.view is None or folder is None:
            raise InvalidRequestError(
                f"table {entry.name} is a view, and no folder for views is set",
                fix="set views: to a folder of the server's own",
                kind="bad-configuration",
            )
        where = entry.view.where
        if where is not None and (word := _CLOCK.search(_QUOTED.sub("", where))):
            raise InvalidRequestError(
                f"view {entry.name} depends on the moment ({word[0]}), and is copied only when its table changes",
                fix="compare with a fixed moment",
                kind="bad-predicate",
            )
        self._view = entry.view
        self._clock = clock
        self._base = base
        # another definition is another table: what it hides must not be reached through the versions of this one
        words = repr((entry.view.columns, entry.view.where, base.address))
        name = f"{entry.id}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"
        self._address = f"{folder.rstrip('/')}/{name}" if "://" in folder else str(Path(folder) / name)
        self._copy = _open_copy(self._address)
        super().__init__(self._updated_copy())

    def refresh(self) -> int:
        """Copy what is selected if the base has another version; the latest version of the copy."""
        copy = self._updated_copy()
        if copy is not self._table:
            super().__init__(copy)
        return super().refresh()

    def _updated_copy(self) -> DeltaTable:
        look_again(self._base)
        version = self._base.latest_version
        if self._copy is not None and self._copied_version() != version:
            look_again(self._copy)  # another process of this server may have copied it
        if self._copy is None or self._copied_version() != version:
            self._copy_version(version)
        assert self._copy is not None
        return self._copy

    def _copied_version(self) -> int | None:
        assert self._copy is not None
        versions = dict(self._copy.snapshot().transactions.select("app_id", "version").iter_rows())
        return versions.get(self._application(self._base.latest_version))

    def _application(self, version: int) -> str:
        """Under which name the copy says what it holds: a base that was deleted and recreated has another id."""
        return f"{_APPLICATION}-{self._base.snapshot(version).id}"

    def _copy_version(self, version: int) -> None:
        """Make the copy of a version, unless another process of this server is first: what it copies will do."""
        for last in (False, False, True):
            try:
                self._materialise(version)
                break
            except CommitConflictError:
                if last:
                    raise
                self._copy = _open_copy(self._address)  # it may be there by now, with or without its rows
        assert self._copy is not None
        self._copy.refresh()
        if self._copy.latest_version % _TIDY_EVERY == 0:
            delete_old(self._copy, self._clock)
            self._copy = _open_copy(self._address)

    def _materialise(self, version: int) -> None:
        schema = self._base.snapshot(version).schema
        target = Schema(tuple(replace(public_field(f), nullable=True) for f in _selected_fields(schema, self._view)))
        for field in target:
            if field.type == PrimitiveType("variant"):  # read as JSON text, which has lost the types of its values
                raise UnsupportedTableError(
                    f"column {field.name} of the view is a variant, whose values are not copied",
                    fix="leave the column out of the view",
                    place=field.name,
                    kind="unsupported-type",
                )
        frame = self._selected_rows(version, schema, target.names)
        if self._copy is None:
            self._copy = create_table(self._address, target, engine=_ENGINE, clock=self._clock)
        with self._copy.transaction(
            "WRITE", parameters={"mode": "Overwrite"}, engine=_ENGINE, clock=self._clock
        ) as txn:  # which begins with the latest version
            if self._copied_version() == version:
                return
            txn.remove()
            if txn.schema != target:
                txn.replace_schema(target)
            txn.append(frame)
            txn.set_transaction(self._application(version), version)

    def _selected_rows(self, version: int, schema: Schema, columns: list[str]) -> pl.DataFrame:
        rows = self._base.scan(version)
        try:
            if self._view.where is not None:
                condition = predicate(self._view.where, schema)
                rows = rows.filter(condition)
            return rows.select(cs.by_name(*columns)).collect(engine="streaming")
        except pl.exceptions.PolarsError as error:
            fix = "compare columns with values of their own types"
            raise not_evaluated(f"the view's condition {self._view.where!r}", error, fix) from error


def _open_copy(address: str) -> DeltaTable | None:
    try:
        # one broken data file may not end the server: polars aborts on some, pyarrow refuses them
        table = open_table(address, config=replace(settings(), polars_parquet=False))
    except NotATableError:
        return None
    return table if isinstance(table, DeltaTable) else None


def _selected_fields(schema: Schema, view: ViewEntry) -> list[Field]:
    if view.columns is None:
        return list(schema)
    if missing := [c for c in view.columns if c not in schema]:
        raise InvalidRequestError(f"the view names column {missing[0]}, which its table has not", kind="unknown-column")
    return [schema[c] for c in view.columns]
