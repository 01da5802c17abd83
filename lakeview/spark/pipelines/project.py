"""The files of a pipeline's project, and `lakeview pipeline init`: a folder to a small pipeline that runs: an input,
its files and its configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from lakeview.model.errors import InvalidRequestError
from lakeview.model.yaml_documents import load_yaml, yaml_problem

_SPEC = """\
# The pipeline as Spark Declarative Pipelines know it (Spark 4.1 and newer).
name: {name}
# Checkpoints of the flows. Spark wants an absolute URI: change it when the project moves.
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""

_ORDERS = '''\
"""Orders as files of JSON lines arrive: new rows to a sink, which lakeview publishes by lakeview-pipeline.yml."""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark: SparkSession  # Spark gives every file of a pipeline its session
PROJECT = Path(__file__).resolve().parent.parent
INPUT, SCHEMA = str(PROJECT / "input/orders"), "id long, customer string, price double, ordered date"

dp.create_sink("orders", format="lakeview", options={"path": str(PROJECT / "staging/orders")})


@dp.append_flow(target="orders")
def new_orders() -> DataFrame:
    """Each row once, however often the pipeline runs. A table: spark.readStream.format("lakeview").load(address)."""
    return spark.readStream.schema(SCHEMA).json(INPUT)


@dp.materialized_view
def revenue() -> DataFrame:
    """Computed again by each run. It has no format: Spark gives a view of format lakeview no path to write to."""
    orders = spark.read.schema(SCHEMA).json(INPUT)
    return orders.where("price > 0").groupBy("customer").agg(F.sum("price").alias("revenue"))
'''

_CONFIG = """\
# What lakeview does with the results after Spark ran the pipeline. docs/pipelines.md explains every word.
output: lake               # published tables lie here, records of the runs below lake/_lakeview

tables:
  orders:
    sink: orders           # the new rows of this sink ...
    publish: merge         # ... replace those of the same key and are added where there is none
    keys: [id]
    order_by: [ordered]    # of several rows of a key, the latest
    expectations:
      - {name: price is positive, condition: price > 0, action: quarantine}
      - {name: customer is known, condition: customer IS NOT NULL, action: drop}
      - {name: order is not huge, condition: price < 10000, action: warn}
    optimize: true
    vacuum: 7d

  revenue:
    view: revenue          # all rows of this view ...
    publish: overwrite     # ... replace the table
    expectations:
      - {name: one row per customer, unique: [customer], action: fail}
"""


def write_project(folder: Path) -> None:
    """Write a project into a folder that is not there or empty; InvalidRequestError for another one."""
    name = "".join(c if c.isalnum() else "_" for c in folder.resolve().name)
    write_files(folder, {"transformations/orders.py": _ORDERS, FILE: _CONFIG}, name)
    orders = pl.DataFrame(
        {
            "id": [1, 2, 3, 4, 5],
            "customer": ["ann", "bob", None, "ann", "cy"],
            "price": [12.5, 7.25, 3.0, -1.0, 20_000.0],
            "ordered": ["2026-01-05", "2026-01-06", "2026-01-06", "2026-01-07", "2026-01-08"],
        },
    )
    (folder / "input" / "orders").mkdir(parents=True)
    orders.write_ndjson(folder / "input" / "orders" / "first.json")


def write_files(folder: Path, files: Mapping[str, str], name: str) -> None:
    """Write the files of the project `name` (path -> text), and its specification, into a folder that is not there or
    empty; InvalidRequestError for another one. Files below `transformations` define the flows."""
    folder = folder.resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidRequestError(
            f"{folder} is there already, and not empty", fix="name another folder", place=str(folder)
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequestError(
            f"{folder} cannot be created: {error.strerror}", fix="name another folder", place=str(folder)
        ) from error
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    write_specification(folder, folder, name)


def write_specification(folder: Path, place: Path, name: str) -> None:
    """Write the specification of the project `name` for the time when its folder lies at `place`, an absolute path."""
    spec = _SPEC.format(name=name, storage=(place / "storage").as_uri())
    (folder / SPECS[0]).write_text(spec, encoding="utf-8")


FILE = "lakeview-pipeline.yml"
SPECS = ("spark-pipeline.yml", "spark-pipeline.yaml")
"""The names that Spark has for the specification of a pipeline."""

CORRECT = "correct the file"


def read_text(path: Path) -> str:
    """The text of a file of a project. InvalidRequestError for one that is not there or no text."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InvalidRequestError(
            f"{path} is not there", fix="run `lakeview pipeline init` to see one", place=str(path)
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            f"{path} is no UTF-8: {error}", fix="save the file as UTF-8", place=str(path), kind="bad-pipeline"
        ) from error


def read_yaml(text: str, place: str) -> Any:
    """The document in the text of a file. InvalidRequestError with the line of what is no YAML."""
    try:
        return load_yaml(text)
    except yaml.YAMLError as error:
        raise bad_pipeline(f"it is no YAML: {yaml_problem(error)}", place) from error
    except RecursionError as error:
        raise bad_pipeline("it refers to itself, or is nested too deep", place) from error


def find_spec(folder: Path) -> Path:
    """The specification of the Spark pipeline in a folder. InvalidRequestError unless there is exactly one."""
    paths = [folder / name for name in SPECS if (folder / name).is_file()]
    if len(paths) != 1:
        raise InvalidRequestError(
            f"{folder} has {'two specifications' if paths else 'no specification'} of a Spark pipeline",
            fix=f"have one of {' and '.join(SPECS)}; `lakeview pipeline init DIR` writes a project",
            place=str(folder),
        )
    return paths[0]


def bad_pipeline(problem: str, place: str, fix: str = CORRECT) -> InvalidRequestError:
    """The error for a file whose text means nothing."""
    return InvalidRequestError(
        f"{place} is no configuration of a pipeline: {problem}", fix=fix, place=place, kind="bad-pipeline"
    )
