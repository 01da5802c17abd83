"""A tree to SQL text: one walk, with names and constants as each reader of the text takes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal

from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import quote_name
from lakeview.predicates.tree import And, Comparison, Constant, IsIn, IsNull, Node, Or, Path, StartsWith


@dataclass(frozen=True, slots=True)
class SQLPrinter:
    """Prints trees. `name` and `literal` return None for a column or constant that the dialect cannot write safely.

    `value_list` writes the constants of a membership test, None for one that is not written. `not_equal`: its operator.
    `is_extended`: prefixes and constants are written as well.
    """

    name: Callable[[Path], str | None]
    literal: Callable[[Path, object], str | None]
    value_list: Callable[[IsIn], str | None]
    not_equal: str = "!="
    is_extended: bool = False

    def print(self, node: Node) -> str | None:
        """Returns the text of a tree; None where a part of it cannot be written."""
        match node:
            case And(left, right) | Or(left, right):
                texts = self.print(left), self.print(right)
                return None if None in texts else f"({texts[0]} {type(node).__name__.upper()} {texts[1]})"
            case Constant(value) if self.is_extended:
                return "NULL" if value is None else str(value).upper()
            case Comparison() | IsNull() | IsIn() | StartsWith():
                name = self.name(node.path)
                return None if name is None else self._leaf(name, node)
        return None

    def _leaf(self, name: str, leaf: Comparison | IsNull | IsIn | StartsWith) -> str | None:
        match leaf:
            case IsNull():
                return f"{name} IS {'NOT ' if leaf.is_negated else ''}NULL"
            case Comparison(path, op, value):
                text = self.literal(path, value[0])
                return None if text is None else f"{name} {self.not_equal if op == '!=' else op} {text}"
            case IsIn():
                text = self.value_list(leaf)
                return None if text is None else f"{name} {'NOT ' if leaf.is_negated else ''}IN ({text})"
            case StartsWith(path, prefix):
                text = self.literal(path, prefix + "%") if self.is_extended else None
                return None if text is None else f"{name} LIKE {text}"


def polars_name(parts: Sequence[str]) -> str:
    """Returns a column in polars' SQL: every part in back-quotes, for it may be a word of SQL."""
    return ".".join(map(quote_name, parts))


def polars_literal(value: object) -> str:
    """Returns a constant in polars' SQL. InvalidRequestError for a value of a type that has no constants."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float() | Decimal():
            return str(value)
        case datetime():
            if value.tzinfo is None:
                return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
            return f"TIMESTAMP WITH TIME ZONE '{value.astimezone(UTC).isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case time():
            return f"TIME '{value.isoformat()}'"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return f"'{value.replace(chr(39), chr(39) * 2)}'"
    raise InvalidRequestError(f"a {type(value).__name__} cannot be written as SQL", fix="compare with a plain value")


def _polars_list(leaf: IsIn) -> str | None:
    values = leaf.values.to_list()
    return ", ".join(polars_literal(value) for value in values) if values and None not in values else None


POLARS = SQLPrinter(polars_name, lambda _, value: polars_literal(value), _polars_list)
"""Prints conditions that polars' SQL reader takes as they are."""
