"""Names in Spark's own catalog, to where their tables are, and back.

Spark passes a Python source no location of a table of its catalog, so that such a table is not read by its name alone:
the entry is for `DeltaTable.forName`.
"""

import re
from collections.abc import Collection

from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

from lakeview.delta.table import DeltaTable
from lakeview.model.errors import InvalidRequestError, NotATableError
from lakeview.model.schema import Schema, quote_name
from lakeview.spark.types import ddl, to_spark

_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.\s]+))\s*(\.|$)")
_OF_PATHS = ("delta", "lakeview")
"""What stands before the path of a table, in place of a name."""

_FOR_PATH = "open it by its address: DeltaTable.forPath(spark, 'address')"
_PLAIN = re.compile(r"\w+", re.ASCII)
"""Names that the catalog of a session has."""

_VARIABLE = "${"
"""What Spark puts the value of a setting in place of, in any text of SQL."""


def name_parts(identifier: str) -> tuple[str, ...]:
    """The parts of a name such as `db.orders`, back-quotes taken off. InvalidRequestError for what is no name."""
    parts, at, end = [], 0, "."
    while match := _PART.match(identifier, at) if end else None:
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        at, end = match.end(), match[3]
    if end or not parts:
        raise InvalidRequestError(
            f"{identifier!r} is no name of a table",
            fix="write it as orders, shop.orders, or delta.`address`; names with other signs in back-quotes",
            place=identifier,
            kind="table-name",
        )
    return tuple(parts)


def path_of(identifier: str, formats: Collection[str] = _OF_PATHS) -> str | None:
    """The address in an identifier such as delta.`lake/orders`; None for a name."""
    if "`" not in identifier:
        return None
    parts = name_parts(identifier)
    return parts[1] if len(parts) == 2 and parts[0].lower() in formats else None


def location(spark: SparkSession, name: str) -> str | None:
    """Where the table of a name is, None where the catalog has no such name.

    InvalidRequestError for a view, whose tables it does not tell.
    """
    *namespace, last = name_parts(name)
    for row in _tables(spark, name, namespace, last):
        # of two lines with one word the last counts: a comment, which may have lines of its own, precedes the location
        lines = row.information.partition("\nSchema: ")[0].split("\n")
        facts = dict(line.split(": ", 1) for line in lines if ": " in line)
        if row.isTemporary or facts.get("Type") == "VIEW":
            raise InvalidRequestError(
                f"{name} is a view, and Spark does not tell which table is behind it",
                fix=_FOR_PATH, place=name, kind="view",
            )  # fmt: skip
        return facts.get("Location", "").removeprefix("file:") or None
    return None


def without_table(name: str, address: str) -> NotATableError:
    """The error for a name whose location has no table: CREATE TABLE enters both, and asks no Python source."""
    return NotATableError(
        f"{name} stands for {address}, where no table is",
        fix=f"make it with DeltaTable.createIfNotExists(spark).location({address!r}), or write rows there: "
        f'.write.format("lakeview").mode("append").save({address!r})',
        place=address,
    )


def required_location(spark: SparkSession, name: str) -> str:
    """As `location`; NotATableError without one."""
    address = location(spark, name)
    if address is None:
        raise NotATableError(f"Spark's catalog has no table {name} with a location", fix=_FOR_PATH, place=name)
    return address


def default_location(spark: SparkSession, name: str) -> str:
    """Where Spark would put a table of that name: in the folder of its database."""
    *namespace, last = name_parts(name)
    database = ".".join(map(quote_name, namespace)) or quote_name(spark.catalog.currentDatabase())
    facts = {row.info_name: row.info_value for row in spark.sql(f"DESCRIBE DATABASE {database}").collect()}
    return f"{facts['Location'].removeprefix('file:')}/{last.lower()}"


def check_entry(name: str, address: str, schema: Schema) -> None:
    """InvalidRequestError for a table that `register_table` cannot enter into Spark's catalog."""
    if _VARIABLE in _columns(schema):
        raise _no_entry(name, f"a column with {_VARIABLE} in its name", "leave tableName out, or rename the column")
    if "\n" in address:
        raise _no_entry(name, "a location of two lines", "leave tableName out, or choose another location")


def check_name(name: str) -> None:
    """InvalidRequestError for a name that Spark's catalog has no table under."""
    if not all(map(_PLAIN.fullmatch, name_parts(name))):
        raise _no_entry(name, "such a name", "choose one of Latin letters, digits and _, or leave tableName out")


def register_table(spark: SparkSession, name: str, table: DeltaTable) -> None:
    """Let Spark's catalog know a table by its name, and where it is; nothing changes for a name that it has."""
    full_name = ".".join(map(quote_name, name_parts(name)))
    address = table.address.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    columns = _columns(table.snapshot().schema)
    spark.sql(f"CREATE TABLE IF NOT EXISTS {full_name} ({columns}) USING lakeview LOCATION '{address}'")


def _columns(schema: Schema) -> str:
    return ", ".join(f"{quote_name(f.name)} {ddl(f.dataType)}" for f in to_spark(schema))


def _no_entry(name: str, what: str, fix: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"Spark's catalog has no table {name!r} with {what}", fix=fix, place=name, kind="table-name"
    )


def _tables(spark: SparkSession, name: str, namespace: list[str], last: str) -> list[Row]:
    """What the catalog shows of a name: a temporary view first, as Spark itself would take it."""
    if not _PLAIN.fullmatch(last):
        return []
    place = f"IN {'.'.join(map(quote_name, namespace))} " if namespace else ""
    try:
        rows = spark.sql(f"SHOW TABLE EXTENDED {place}LIKE '{last}'").collect()
    except AnalysisException as error:
        raise NotATableError(
            f"Spark's catalog has no table {name}: {str(error).splitlines()[0]}", fix=_FOR_PATH, place=name
        ) from error
    same_name = [row for row in rows if row.tableName.casefold() == last.casefold()]
    return sorted(same_name, key=lambda row: not row.isTemporary)
