"""Types: a table's schema to Spark's, and back; and the exact Arrow schema Spark takes batches in."""

from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as spark_types
from pyspark.sql.pandas.types import to_arrow_schema

from lakeview.model.data_types import ArrayType, DataType, DecimalType, Field, MapType, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError, UnsupportedTableError
from lakeview.model.schema import Schema, quote_name

# Types not in this table (time, uuid, timestamps in nanoseconds, variant, ...) have no faithful Spark type that a
# Python data source can yield.
PRIMITIVES: Mapping[str, spark_types.DataType] = {
    "string": spark_types.StringType(),
    "long": spark_types.LongType(),
    "integer": spark_types.IntegerType(),
    "short": spark_types.ShortType(),
    "byte": spark_types.ByteType(),
    "float": spark_types.FloatType(),
    "double": spark_types.DoubleType(),
    "boolean": spark_types.BooleanType(),
    "binary": spark_types.BinaryType(),
    "date": spark_types.DateType(),
    "timestamp": spark_types.TimestampType(),
    "timestamp_ntz": spark_types.TimestampNTZType(),
    "void": spark_types.NullType(),
}
_NAMES = {type(spark_type): name for name, spark_type in PRIMITIVES.items()}


def to_spark(schema: Schema) -> spark_types.StructType:
    """Spark's schema of a table, every column and field nullable: a file may lack any column of a later version.

    Raises UnsupportedTableError that names the column whose type Spark cannot take from here.
    """
    return spark_types.StructType([spark_types.StructField(f.name, _to_spark(f.type, f.name)) for f in schema])


def from_spark(schema: spark_types.StructType) -> Schema:
    """The schema of a table made from a DataFrame, every column nullable: Spark calls a literal not null.

    Raises UnsupportedTableError that names the column whose type no table holds, InvalidRequestError for rows without
    a column, which no file would hold.
    """
    if not schema.fields:
        raise InvalidRequestError("the rows have no column", fix="select one", kind="no-columns")
    return Schema(_fields(schema, "", is_declared=False))


def declared_schema(schema: spark_types.StructType) -> Schema:
    """The schema of a table that is declared so: with comments, and nulls at any depth where fields allow them.

    Raises UnsupportedTableError that names the column whose type no table holds.
    """
    return Schema(_fields(schema, "", is_declared=True))


def declared_type(kind: spark_types.DataType, column: str) -> DataType:
    """The type of a column that is declared so. UnsupportedTableError for one that no table holds, and for texts of a
    length, which no rule of the table would check."""
    return _from_spark(kind, column, is_declared=True)


def column(name: str) -> Column:
    """A column of any name."""
    return f.col(quote_name(name))


def ddl(kind: spark_types.DataType) -> str:
    """A type in Spark's SQL, names of fields in back-quotes."""
    match kind:
        case spark_types.ArrayType():
            return f"array<{ddl(kind.elementType)}>"
        case spark_types.MapType():
            return f"map<{ddl(kind.keyType)}, {ddl(kind.valueType)}>"
        case spark_types.StructType():
            return f"struct<{', '.join(f'{quote_name(f.name)}: {ddl(f.dataType)}' for f in kind)}>"
    return kind.simpleString()


def struct_type(columns: str | spark_types.StructType) -> spark_types.StructType:
    """Columns that are given as Spark's SQL has them, such as `day date, n int`. InvalidRequestError for other text."""
    if isinstance(columns, spark_types.StructType):
        return columns
    try:
        schema = spark_types.DataType.fromDDL(columns)
    except ParseException as error:
        raise _no_columns(columns) from error
    if not isinstance(schema, spark_types.StructType):
        raise _no_columns(columns)
    return schema


def _no_columns(text: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{text!r} is no list of columns in Spark's SQL", fix="write names and types: 'day date, n int'", place=text
    )


def check_schema(reader_schema: spark_types.StructType, schema: Schema) -> None:
    """InvalidRequestError where the schema that a reader was given has columns that a table has not, or has otherwise:
    fields of other names would come as nulls, and values of other types changed, or not at all."""
    for field, own in zip(reader_schema, to_spark(schema.select(reader_schema.fieldNames())), strict=True):
        reader_type, own_type = field.dataType.simpleString(), own.dataType.simpleString()
        if reader_type != own_type:
            raise InvalidRequestError(
                f"the reader was given a schema where {field.name} is {reader_type}, and in the table it is {own_type}",
                fix="leave schema(...) out, or give the table's types, and cast columns of the DataFrame",
                place=field.name,
                kind="other-type",
            )


def arrow_schema(schema: spark_types.StructType) -> pa.Schema:
    """What the first batch of a reader must equal exactly."""
    return to_arrow_schema(schema, timezone="UTC")


def _to_spark(kind: DataType, column: str) -> spark_types.DataType:
    match kind:
        case DecimalType(precision, scale):
            return spark_types.DecimalType(precision, scale)
        case ArrayType(element):
            return spark_types.ArrayType(_to_spark(element, column))
        case MapType(key, value):
            return spark_types.MapType(_to_spark(key, column), _to_spark(value, column))
        case StructType(fields):
            return spark_types.StructType([spark_types.StructField(f.name, _to_spark(f.type, column)) for f in fields])
        case PrimitiveType(name):
            if name not in PRIMITIVES:
                raise _unsupported_type(column, name, "leave the column out: name the others in `columns`")
            return PRIMITIVES[name]


def _fields(fields: Iterable[spark_types.StructField], prefix: str, *, is_declared: bool) -> tuple[Field, ...]:
    """Fields of a struct, `prefix` before their names in errors. `is_declared`: with their comments, and null where
    they say so; else every field may be null."""
    own = []
    for field in fields:
        comment = (field.metadata or {}).get("comment")
        metadata = {"comment": comment} if is_declared and isinstance(comment, str) else {}
        type_ = _from_spark(field.dataType, f"{prefix}{field.name}", is_declared=is_declared)
        own.append(Field(field.name, type_, field.nullable or not is_declared, metadata))
    return tuple(own)


def _from_spark(kind: spark_types.DataType, column: str, *, is_declared: bool) -> DataType:
    def part(kind: spark_types.DataType, name: str) -> DataType:
        return _from_spark(kind, f"{column}.{name}", is_declared=is_declared)

    match kind:
        case spark_types.DecimalType():
            return DecimalType(kind.precision, kind.scale)
        case spark_types.ArrayType():
            return ArrayType(part(kind.elementType, "element"), kind.containsNull or not is_declared)
        case spark_types.MapType():
            key, value = part(kind.keyType, "key"), part(kind.valueType, "value")
            return MapType(key, value, kind.valueContainsNull or not is_declared)
        case spark_types.StructType():
            return StructType(_fields(kind, f"{column}.", is_declared=is_declared))
        case spark_types.VarcharType() | spark_types.CharType() if is_declared:
            raise UnsupportedTableError(
                f"column {column} is {kind.simpleString()}, and lakeview's writer does not hold texts to a length",
                fix=f"declare it as string, and add the constraint length({column}) <= {kind.length}",
                place=column,
                kind="unsupported-type",
            )
        case spark_types.VarcharType() | spark_types.CharType():
            return PrimitiveType("string")
        case _ if type(kind) in _NAMES:
            return PrimitiveType(_NAMES[type(kind)])
    raise _unsupported_type(column, kind.simpleString(), "cast the column before writing")


def _unsupported_type(column: str, kind: str, fix: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"column {column} has the type {kind}, which does not pass between lakeview and Spark",
        fix=fix,
        place=column,
        kind="unsupported-type",
    )
