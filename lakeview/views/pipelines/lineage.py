"""Lineage to a picture: versions of tables as nodes in layers, what was read for what as edges."""

from collections.abc import Collection
from itertools import takewhile

import polars as pl

from lakeview.model.pipelines import LINEAGE, MOMENT

LINEAGE_NODES = pl.Schema(
    {
        "node": pl.String(),
        "address": pl.String(),
        "name": pl.String(),
        "version": pl.Int64(),
        "layer": pl.Int64(),
        "position": pl.Int64(),
        "run_id": pl.String(),
        "timestamp": MOMENT,
    }
)
"""One row a version of a table, or files without versions, by layer and position. `node`: its id; `name`: the last
parts of the address, as few as tell it from the others; `layer`: 0 for what the pipeline only reads, else one
more than its deepest input of another table; `position`: 0, 1, ... in its layer. `run_id`, `timestamp`: of the commit
that made the version, null for what other writers made."""

LINEAGE_EDGES = pl.Schema(
    {
        "source": pl.String(),
        "target": pl.String(),
        "step": pl.String(),
        "dataset": pl.String(),
        "run_id": pl.String(),
        "input_from": pl.Int64(),
        "input_version": pl.Int64(),
    }
)
"""One row an input of a version: `source` and `target` are nodes of LINEAGE_NODES, the rest as in LINEAGE."""

_MOST_STEPS = 1000
"""Versions that are followed upstream, one after the other: a chain that is longer is cut."""


def upstream(lineage: pl.DataFrame, output: str, version: int) -> pl.DataFrame:
    """LINEAGE rows of one version of a table, and of all that it was made of, however far back."""
    inputs = pl.DataFrame({"output": [output], "output_version": [version]}, schema=_OUTPUT)
    edges = pl.DataFrame(schema=LINEAGE)
    for _ in range(_MOST_STEPS):
        rows = lineage.join(inputs, on=["output", "output_version"], how="semi", nulls_equal=True)
        rows = rows.join(edges, on=LINEAGE.names(), how="anti", nulls_equal=True)
        if rows.is_empty():
            break
        edges = pl.concat([edges, rows])
        inputs = _versions_read(lineage, rows)
    return edges


def lineage_nodes(lineage: pl.DataFrame) -> pl.DataFrame:
    """LINEAGE_NODES of rows of LINEAGE."""
    inputs = lineage.select(address="input", version="input_version", run_id=None, timestamp=None)
    outputs = lineage.select("run_id", "timestamp", address="output", version="output_version")
    names = _names({*lineage["input"], *lineage["output"]})
    nodes = (
        pl.concat([outputs.select(inputs.columns), inputs.cast({"run_id": pl.String, "timestamp": MOMENT})])
        .group_by("address", "version")
        .agg(pl.col("run_id", "timestamp").drop_nulls().first())
        .with_columns(
            _node("address", "version").alias("node"),
            pl.col("address").replace_strict(names, return_dtype=pl.String).alias("name"),
            pl.col("address").replace_strict(_layers(lineage), default=0, return_dtype=pl.Int64).alias("layer"),
        )
        .sort("layer", "address", "version")
        .with_columns(pl.int_range(pl.len()).over("layer").alias("position"))
    )
    return nodes.select(pl.col(name).cast(type_) for name, type_ in LINEAGE_NODES.items())


def lineage_edges(lineage: pl.DataFrame) -> pl.DataFrame:
    """LINEAGE_EDGES of rows of LINEAGE, oldest first."""
    edges = lineage.sort("timestamp", "output", "output_version", "input").with_columns(
        _node("input", "input_version").alias("source"), _node("output", "output_version").alias("target")
    )
    return edges.select(pl.col(name).cast(type_) for name, type_ in LINEAGE_EDGES.items())


def newest_nodes(nodes: pl.DataFrame, of_table: int, of_layer: int) -> pl.DataFrame:
    """LINEAGE_NODES of the newest versions, at most so many of a table and of a layer, with their positions."""
    newest = pl.col("version").rank("ordinal", descending=True).over("address").fill_null(1) <= of_table
    few = nodes.filter(newest).filter(pl.int_range(pl.len()).over("layer") < of_layer)
    return few.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).over("layer").alias("position"))


def range_edges(nodes: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """LINEAGE_EDGES from the versions before the last of what an input read: those from `input_from` on that are nodes.

    With these and `edges`, each version in a range that was read leads to what was made of it.
    """
    ranges = edges.drop_nulls("input_from").join(
        nodes.select(source="node", address="address"), on="source", how="inner"
    )
    sources = ranges.join(nodes.select("node", "address", "version"), on="address", how="inner").filter(
        pl.col("version").is_between("input_from", "input_version", closed="left")
    )
    return sources.with_columns(source="node").select(LINEAGE_EDGES.names())


_OUTPUT = {name: LINEAGE[name] for name in ("output", "output_version")}


def _versions_read(lineage: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The versions of outputs that rows of LINEAGE have read: the one, or all from `input_from` on."""
    outputs = lineage.select("output", "output_version").unique()
    ranges = rows.select("input", "input_from", "input_version").unique()
    met = outputs.join(ranges, left_on="output", right_on="input", how="inner")
    first = pl.coalesce("input_from", "input_version")
    return met.filter(pl.col("output_version").is_between(first, pl.col("input_version"))).select(list(_OUTPUT))


def _node(address: str, version: str) -> pl.Expr:
    """The id of a version: `address@7`; of what has none the address alone."""
    return pl.concat_str(pl.col(address), pl.lit("@") + pl.col(version).cast(pl.String), ignore_nulls=True)


def _names(addresses: Collection[str]) -> dict[str, str]:
    """Address -> its last part; of several with the same one, as many parts before it as tell them apart, and none of
    the folder that they all lie in: of `lake/orders` and `lake/staging/orders` the first is `orders`."""
    alike: dict[str, dict[str, list[str]]] = {}
    for address in addresses:
        parts = address.rstrip("/").split("/")
        alike.setdefault(parts[-1], {})[address] = parts
    names: dict[str, str] = {}
    for group in alike.values():
        folders = zip(*(parts[:-1] for parts in group.values()), strict=False)
        depth = len(list(takewhile(lambda level: len(set(level)) == 1, folders)))
        inner = {address: parts[depth:] for address, parts in group.items()}
        for address, parts in inner.items():
            others = [other for other in inner.values() if other is not parts]
            count = next((n for n in range(1, len(parts)) if all(o[-n:] != parts[-n:] for o in others)), len(parts))
            names[address] = "/".join(parts[-count:])
    return names


def _layers(lineage: pl.DataFrame) -> dict[str, int]:
    """Address of an output -> its layer. A table that is among its own inputs does not count as one."""
    inputs: dict[str, set[str]] = {}
    for source, target in lineage.select("input", "output").unique().rows():
        if source != target:
            inputs.setdefault(target, set()).add(source)
    layers = dict.fromkeys(inputs, 0)
    for _ in range(len(inputs)):  # in a circle of tables the layers would grow without end
        deeper = {target: 1 + max(layers.get(source, 0) for source in sources) for target, sources in inputs.items()}
        if deeper == layers:
            break
        layers = deeper
    return layers
