"""The files of a pipeline's project: their names, and their texts and documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lakeview.model.errors import InvalidRequestError
from lakeview.model.yaml_documents import load_yaml, yaml_problem

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
