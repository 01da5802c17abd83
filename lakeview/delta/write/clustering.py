"""Columns that data is clustered by, to the domain that records them (today's protocol, Clustered Table)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lakeview.delta.data.column_rules import CLUSTERING
from lakeview.delta.log.actions import DomainMetadata
from lakeview.delta.log.commits import json_text
from lakeview.model.data_types import DecimalType, PrimitiveType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.schema import Schema

FEATURE = "clustering"

_MOST = 4
_TYPES = frozenset(
    {"string", "long", "integer", "short", "byte", "float", "double", "date", "timestamp", "timestamp_ntz"}
)
"""Types whose bounds skip files: statistics of the columns are what clustering is for."""


def check_columns(schema: Schema, columns: Sequence[str]) -> None:
    """InvalidRequestError for columns that a table with this schema is not clustered by."""
    if len(set(columns)) > _MOST or len(set(columns)) < len(columns):
        raise _refusal(f"clustered by {', '.join(columns)}", f"name one to {_MOST} columns, each once", "cluster_by")
    for name in columns:
        if name not in schema:
            raise _refusal(f"clustered by {name}, which is not in the schema", "name its columns", name)
        type_ = schema[name].type
        if not isinstance(type_, DecimalType) and not (isinstance(type_, PrimitiveType) and type_.name in _TYPES):
            raise _refusal(f"clustered by {name}, a {type_}, whose bounds skip no files", "choose another column", name)


def clustering_domain(schema: Schema, columns: Sequence[str]) -> DomainMetadata:
    """What records the columns: by the names that they have in data files."""
    # "clusteringColumns: ... a list of physical column paths"
    paths = [[schema[name].stored_name] for name in columns]
    return DomainMetadata(CLUSTERING, json_text({"clusteringColumns": paths, "domainName": CLUSTERING}))


def changed_domain(schema: Schema, columns: Sequence[str], domains: pl.DataFrame) -> DomainMetadata | None:
    """What makes the columns those of a table with these domains; None where there is nothing to record."""
    if columns:
        return clustering_domain(schema, columns)
    for text in domains.filter(domains["domain"] == CLUSTERING)["configuration"]:
        return DomainMetadata(CLUSTERING, text, removed=True)
    return None


def _refusal(what: str, fix: str, place: str) -> InvalidRequestError:
    return InvalidRequestError(f"the table would be {what}", fix=fix, place=place, kind="clustering-columns")
