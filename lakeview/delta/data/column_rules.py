"""Field metadata, properties and domains to RULES: what a table says about its columns besides their types."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import polars as pl

from lakeview.delta.data.schemas import logical_name
from lakeview.delta.data.type_widening import type_changes
from lakeview.model.data_types import Field
from lakeview.model.frames import RULES
from lakeview.model.schema import Schema
from lakeview.model.type_tree import fields_below

CLUSTERING = "delta.clustering"
"""The domain that records the columns that data is clustered by."""

_CONSTRAINT = "delta.constraints."
_COLLATIONS = "__COLLATIONS"
_BINARY_COLLATION = "UTF8_BINARY"


class Rule(NamedTuple):
    """A row of RULES."""

    column: str | None
    kind: str
    name: str | None
    rule: str


def rules(schema: Schema, properties: Mapping[str, str], domains: pl.DataFrame) -> pl.DataFrame:
    """RULES: CHECK constraints of the table, then what each column has, in the schema's order.

    What is recorded in a form no specification knows is shown as it is recorded: no reader has to enforce it.
    """
    rows = recorded_rules(schema, properties, clustering_columns(schema, domains))
    return pl.DataFrame(rows, schema=RULES, orient="row")


def recorded_rules(schema: Schema, properties: Mapping[str, str], clustering: Sequence[str] = ()) -> list[Rule]:
    """The rows of RULES, of a table that is clustered by these columns."""
    rows = [
        Rule(None, "check", key.removeprefix(_CONSTRAINT), text)
        for key, text in properties.items()
        if key.startswith(_CONSTRAINT)
    ]
    for column, field in fields_below(schema):
        rows += [Rule(column, kind, None, text) for kind, text in _of(field)]
        if column in clustering:
            rows.append(Rule(column, "clustering", None, f"{clustering.index(column) + 1} of {len(clustering)}"))
    return rows


def clustering_columns(schema: Schema, domains: pl.DataFrame) -> list[str]:
    """The columns that data is clustered by, as `leaf_name` writes them; DOMAIN_METADATA has their physical names."""
    for text in domains.filter(domains["domain"] == CLUSTERING)["configuration"]:
        value = _json(text)
        paths = value.get("clusteringColumns") if isinstance(value, dict) else None
        return [_clustering_column(schema, path) for path in paths] if isinstance(paths, list) else []
    return []


def collation(field: Field) -> str | None:
    """The collation that the field's own texts are compared by, None for the binary one."""
    collations = field.metadata.get(_COLLATIONS)
    for name in collations.values() if isinstance(collations, dict) else ():
        if not str(name).endswith(_BINARY_COLLATION):
            return str(name)
    return None


def _of(field: Field) -> Iterator[tuple[str, str]]:
    """(kind, rule) of one field."""
    metadata = field.metadata
    if "CURRENT_DEFAULT" in metadata:
        yield "default", _text(metadata["CURRENT_DEFAULT"])
    if "delta.generationExpression" in metadata:
        yield "generated", _expression(metadata["delta.generationExpression"])
    if "delta.identity.start" in metadata or "delta.identity.step" in metadata:
        yield "identity", _identity(metadata)
    if "delta.invariants" in metadata:
        yield "invariant", _expression(metadata["delta.invariants"])
    if "__CHAR_VARCHAR_TYPE_STRING" in metadata:
        yield "length", _text(metadata["__CHAR_VARCHAR_TYPE_STRING"])
    if (name := collation(field)) is not None:
        yield "collation", name
    for change in type_changes(field):
        place = f" ({change['fieldPath']})" if change.get("fieldPath") else ""
        yield "type change", f"{_text(change.get('fromType'))} to {_text(change.get('toType'))}{place}"


def _identity(metadata: Mapping[str, Any]) -> str:
    parts = [
        f"{word} {_text(metadata[key])}"
        for word, key in (
            ("from", "delta.identity.start"),
            ("by", "delta.identity.step"),
            ("reached", "delta.identity.highWaterMark"),
        )
        if metadata.get(key) is not None
    ]
    if metadata.get("delta.identity.allowExplicitInsert") is True:
        parts.append("explicit values allowed")
    return ", ".join(parts)


def _expression(value: Any) -> str:
    """Early writers record bare SQL, today's a JSON text: {"expression": {"expression": "x > 3"}}."""
    expression = _json(value) if isinstance(value, str) else value
    while isinstance(expression, dict) and "expression" in expression:
        expression = expression["expression"]
    return expression if isinstance(expression, str) else _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def _clustering_column(schema: Schema, path: Any) -> str:
    parts = [path] if isinstance(path, str) else path
    physical = tuple(parts) if isinstance(parts, list) and all(isinstance(p, str) for p in parts) else ()
    return logical_name(schema, physical) or _text(path)
