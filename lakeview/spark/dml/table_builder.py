"""A table in the making, with the calls of Delta's own builder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Self, TypeVar

from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

import lakeview as lv
from lakeview import delta
from lakeview.delta.write.row_rules import check_rules
from lakeview.model.addresses import is_local, normalise
from lakeview.model.data_types import Field, PrimitiveType
from lakeview.model.errors import CommitConflictError, InvalidRequestError, NotATableError
from lakeview.model.schema import Schema
from lakeview.spark.addresses import delta_table, find_delta_table
from lakeview.spark.dml.catalog import check_entry, check_name, default_location, location, path_of, register_table
from lakeview.spark.dml.columns import flat_names
from lakeview.spark.types import declared_schema, declared_type
from lakeview.spark.writer import ENGINE
from lakeview.storage.access import StoreAccess

T = TypeVar("T")


class Creation(Enum):
    """What `execute` does: whether there may be a table, and whether there must be one."""

    CREATE = "CREATE TABLE"
    CREATE_IF_NOT_EXISTS = "CREATE TABLE IF NOT EXISTS"
    REPLACE = "REPLACE TABLE"
    CREATE_OR_REPLACE = "CREATE OR REPLACE TABLE"


@dataclass(frozen=True)
class IdentityGenerator:
    """The values that an identity column gives to rows: from `start` on, by `step`."""

    start: int = 1
    step: int = 1

    def metadata(self, *, explicit: bool) -> dict[str, Any]:
        """What the column's metadata records; `explicit`: rows may bring values of their own."""
        start, step = self.start, self.step
        return {
            "delta.identity.start": start, "delta.identity.step": step, "delta.identity.allowExplicitInsert": explicit,
        }  # fmt: skip


class DeltaTableBuilder(Generic[T]):
    """A definition, and where the table is: `tableName`, `location`, or both. `open_result` makes what `execute`
    returns.

    A name without a location is a folder of its database's, which `DROP TABLE` leaves there. The name is entered into
    Spark's catalog for `DeltaTable.forName`; Spark itself reads no table of a Python source by name alone.
    """

    def __init__(
        self,
        spark: SparkSession,
        creation: Creation,
        open_result: Callable[[delta.table.DeltaTable], T],
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._spark = spark
        self._creation = creation
        self._open_result = open_result
        self._access = StoreAccess(storage_options or {})
        self._name: str | None = None
        self._location: str | None = None
        self._description: str | None = None
        self._fields: list[Field] = []
        self._partitions: list[str] = []
        self._clustering: list[str] = []
        self._properties: dict[str, str] = {}

    def tableName(self, identifier: str) -> Self:
        """The name in Spark's catalog, or the address as delta.`address`."""
        path = path_of(identifier)
        self._name, self._location = (identifier, self._location) if path is None else (None, path)
        return self

    def location(self, location: str) -> Self:
        """The address of the table."""
        self._location = location
        return self

    def comment(self, comment: str) -> Self:
        """The description of the table."""
        self._description = comment
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> Self:
        """A column: its type as Spark's SQL has it, or Spark's own. `generatedAlwaysAs`: an expression over other
        columns, or an identity; `generatedByDefaultAs`: an identity for rows that bring no value.

        InvalidRequestError for a text that is no type, UnsupportedTableError for a type that no table holds.
        """
        type_ = declared_type(_type_of(dataType, colName), colName)
        metadata: dict[str, Any] = {} if comment is None else {"comment": comment}
        identity = generatedByDefaultAs if generatedAlwaysAs is None else generatedAlwaysAs
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            raise _refusal(f"column {colName} is generated always and by default", "give one of the two", colName)
        if isinstance(identity, str):
            metadata["delta.generationExpression"] = identity
        elif identity is not None:
            if type_ != PrimitiveType("long"):
                raise _refusal(f"identity column {colName} is {type_}", "declare it as bigint", colName)
            metadata |= identity.metadata(explicit=generatedAlwaysAs is None)
        self._fields.append(Field(colName, type_, nullable, metadata))
        return self

    def addColumns(self, cols: StructType | list[StructField]) -> Self:
        """Columns, such as `df.schema` has them, with what may be null and comments."""
        self._fields += declared_schema(cols if isinstance(cols, StructType) else StructType(cols))
        return self

    def partitionedBy(self, *cols: str | Sequence[str]) -> Self:
        """The columns that rows are partitioned by."""
        self._partitions = flat_names(cols)
        return self

    def clusterBy(self, *cols: str | Sequence[str]) -> Self:
        """The columns that rows are clustered by."""
        self._clustering = flat_names(cols)
        return self

    def property(self, key: str, value: str) -> Self:
        """A property of the table."""
        self._properties[key] = value
        return self

    def execute(self) -> T:
        """Create or replace the table; one that is there already may be left as it is.

        CommitConflictError for a table that must not be there, NotATableError for one that must, InvalidRequestError
        for a folder of other files; for a definition as `lakeview.create_table`, UnsupportedTableError also for a rule
        that lakeview does not evaluate.
        """
        address = self._address()
        table = find_delta_table(address, "created", "choose another location", self._access)
        if self._name is not None:
            stays = table if self._creation is Creation.CREATE_IF_NOT_EXISTS else None
            check_entry(self._name, address, self._schema() if stays is None else stays.snapshot().schema)
        if table is None:
            table = self._create(address)
        elif self._creation is Creation.CREATE:
            raise CommitConflictError(
                f"{table.address} holds a table already",
                fix="use createIfNotExists or createOrReplace, or choose another location",
                kind="table-exists",
                version=table.latest_version,
            )
        elif self._creation is not Creation.CREATE_IF_NOT_EXISTS:
            table.replace_table(
                self._schema(), description=self._description, operation=self._creation.value, **self._definition()
            )
        if self._name is not None:
            register_table(self._spark, self._name, table)
        return self._open_result(table)

    def _create(self, address: str) -> delta.table.DeltaTable:
        if self._creation is Creation.REPLACE:
            raise NotATableError(
                f"there is no table at {address} to be replaced", fix="use createOrReplace", place=address
            )
        try:
            return lv.create_table(
                address, self._schema(), name=self._name, description=self._description,
                storage_options=self._access.options, **self._definition(),
            )  # fmt: skip
        except CommitConflictError as conflict:  # another writer was first
            if conflict.kind != "table-exists" or self._creation is not Creation.CREATE_IF_NOT_EXISTS:
                raise
            return delta_table(address, "created", "", self._access)

    def _address(self) -> str:
        """Where the table is, or will be. InvalidRequestError where nothing tells, or name and location differ."""
        if self._name is None:
            if self._location is None:
                raise _refusal("the table has neither a name nor a location", "call location('address')", "location")
            return self._location
        check_name(self._name)
        own = location(self._spark, self._name)
        if self._location is None:
            return own or default_location(self._spark, self._name)
        folder = normalise(self._location, decode=True)
        if not is_local(folder):
            raise _refusal(
                f"{folder} is in an object store, which Spark's catalog opens by Hadoop's packages for it",
                "leave tableName out, and open the table by its address", "tableName",
            )  # fmt: skip
        if own is not None and normalise(own) != folder:
            raise _refusal(f"{self._name} is a table at {own}, and not at {folder}", "choose another name", "tableName")
        return folder

    def _schema(self) -> Schema:
        """The columns. UnsupportedTableError for a rule that lakeview does not evaluate: it would refuse every row."""
        if not self._fields:
            raise _refusal("the table has no column", "call addColumn or addColumns", "schema")
        schema = Schema(tuple(self._fields))
        check_rules(schema, self._properties, self._resolve_names(self._partitions))
        return schema

    def _definition(self) -> dict[str, Any]:
        partitions, clustering = self._resolve_names(self._partitions), self._resolve_names(self._clustering)
        return {
            "partition_by": partitions, "cluster_by": clustering, "properties": self._properties, "engine": ENGINE,
        }  # fmt: skip

    def _resolve_names(self, names: Sequence[str]) -> list[str]:
        """Names as the columns have them, whose case means nothing."""
        spellings = {field.name.casefold(): field.name for field in self._fields}
        return [spellings.get(name.casefold(), name) for name in names]


def _type_of(type_: str | DataType, column: str) -> DataType:
    if isinstance(type_, DataType):
        return type_
    try:
        return DataType.fromDDL(type_)
    except ParseException as error:
        raise _refusal(f"column {column} is {type_!r}, which is no type of Spark's SQL", "", column) from error


def _refusal(message: str, fix: str, place: str) -> InvalidRequestError:
    return InvalidRequestError(message, fix=fix or "write it as Spark's SQL does", place=place, kind="table-definition")
