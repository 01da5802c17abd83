"""`lakeview-pipeline.yml`: the text of a file to what becomes of the results of a pipeline."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from lakeview.delta.write.property_checks import check_settable
from lakeview.model.addresses import normalise
from lakeview.model.errors import InvalidRequestError
from lakeview.model.printable import choices
from lakeview.predicates.condition import to_expression
from lakeview.spark.pipelines.project import CORRECT, FILE, bad_pipeline, read_text, read_yaml
from lakeview.storage.access import StoreAccess
from lakeview.storage.configured import section_options, store_kind

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_DURATION = re.compile(r"(\d{1,5})([hd])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1)}


class Action(StrEnum):
    """What becomes of a row that fails an expectation."""

    WARN = "warn"
    """It is published and counted."""
    DROP = "drop"
    """It is left out and counted."""
    QUARANTINE = "quarantine"
    """It goes to the quarantine table of its dataset."""
    FAIL = "fail"
    """Nothing of the dataset is published by this run."""


REMOVING = frozenset({Action.DROP, Action.QUARANTINE})


class Mode(StrEnum):
    """How results become rows of the published table."""

    APPEND = "append"
    MERGE = "merge"
    OVERWRITE = "overwrite"


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that rows have to satisfy: a SQL condition, or columns whose values no two rows share."""

    name: str
    action: Action = Action.WARN
    condition: str | None = None
    unique: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The rule as people and the table of expectations read it."""
        return f"UNIQUE ({', '.join(self.unique)})" if self.condition is None else self.condition


class Dataset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is published of one result. `sink`: of the pipeline, whose new rows are published; or `view`: a table or
    materialized view of the pipeline, which is published whole. `keys`: of a merge; `order_by`: the row of a key with
    the largest values there counts; `delete_when`: rows for which this condition is true delete the row of their key;
    `tombstones`: how long that is remembered.
    `partition_by`, `properties`: of the table when it is created."""

    sink: str | None = None
    view: str | None = None
    publish: Mode = Mode.APPEND
    keys: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    delete_when: str | None = None
    tombstones: str | None = None
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}
    merge_schema: bool = False
    expectations: tuple[Expectation, ...] = ()
    optimize: bool = False
    z_order_by: tuple[str, ...] = ()
    vacuum: str | None = None

    @property
    def retention(self) -> timedelta | None:
        """How long files that are no longer needed are retained; None where the dataset is not vacuumed."""
        return _duration(self.vacuum)

    @property
    def tombstone_period(self) -> timedelta | None:
        """How long deletions are remembered; None for good."""
        return _duration(self.tombstones)

    @property
    def is_maintained(self) -> bool:
        """True if files of the published table are packed, ordered or vacuumed, or its tombstones are pruned."""
        return bool(self.optimize or self.z_order_by or self.vacuum or self.tombstones)

    def spelled_as(self, columns: Sequence[str]) -> Dataset:
        """The dataset with the spelling of these columns, whose case Spark may be set to regard. Names that no column
        has stay as they are."""
        spellings = {column.casefold(): column for column in columns}

        def spell_names(names: Sequence[str]) -> tuple[str, ...]:
            return tuple(spellings.get(name.casefold(), name) for name in names)

        rules = (msgspec.structs.replace(rule, unique=spell_names(rule.unique)) for rule in self.expectations)
        return msgspec.structs.replace(
            self,
            keys=spell_names(self.keys),
            order_by=spell_names(self.order_by),
            partition_by=spell_names(self.partition_by),
            expectations=tuple(rules),
        )

    @property
    def rules(self) -> tuple[Expectation, ...]:
        """The expectations, and that the keys of a merge are unique where no order says which row counts."""
        if self.publish is not Mode.MERGE or self.order_by or any(e.unique == self.keys for e in self.expectations):
            return self.expectations
        return (*self.expectations, Expectation("keys of the merge", Action.FAIL, unique=self.keys))


class PipelineConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`output`: the folder of the published tables; `tables`: their names below it; `storage_options`: of the store of
    `output`, a secret as the name of an environment variable, `{env: NAME}`."""

    output: str
    tables: Mapping[str, Dataset] = {}
    storage_options: Mapping[str, Any] = {}

    @property
    def access(self) -> StoreAccess:
        """What the published tables are opened with. InvalidRequestError for a secret in the file, and for a variable
        that is not set."""
        kind = store_kind(normalise(self.output))
        return StoreAccess(section_options(f"storage_options of {FILE}", kind, self.storage_options))


def read_config(folder: Path) -> PipelineConfig:
    """The configuration of a project, its `output` an absolute path or an address. InvalidRequestError for a file that
    is not there or means nothing."""
    path = folder / FILE
    config = parse_config(read_text(path), str(path))
    if "://" in config.output:
        return config
    return msgspec.structs.replace(config, output=str((folder / config.output).resolve()))


def parse_config(text: str, place: str = FILE) -> PipelineConfig:
    """The configuration in a text. InvalidRequestError for what cannot be meant, with the dataset or field."""
    document = read_yaml(text, place)
    try:
        config = msgspec.convert(document, PipelineConfig)
    except msgspec.ValidationError as error:
        problem = _with_table_name(document, error)
        raise bad_pipeline(problem, place, _fix_of(problem)) from error
    if not config.output:
        raise bad_pipeline("output names no folder", place)
    for name, dataset in config.tables.items():
        if not _NAME.fullmatch(name):
            raise bad_pipeline(
                f"{name!r} is no name of a table: it has ASCII letters, digits, _ - and ., a letter or digit first",
                place,
            )
        for problem in _problems(dataset):
            raise bad_pipeline(f"table {name}: {problem}", place)
        check_settable(dataset.properties)
    return config


def _problems(dataset: Dataset) -> Sequence[str]:
    wrong = {
        "it names neither a sink nor a view, or both": (dataset.sink is None) == (dataset.view is None),
        "a view is published whole: publish must be overwrite": dataset.view is not None
        and dataset.publish is not Mode.OVERWRITE,
        "vacuum is a retention such as 7d or 12h": dataset.vacuum is not None and dataset.retention is None,
        "two expectations have one name": len({e.name for e in dataset.expectations}) < len(dataset.expectations),
        **_problems_of_merge(dataset),
    }
    lists = {name: getattr(dataset, name) for name in ("keys", "order_by", "partition_by", "z_order_by")}
    lists |= {f"unique of expectation {e.name}": e.unique for e in dataset.expectations}
    counts = ((what, name, count) for what, names in lists.items() for name, count in Counter(names).items())
    twice = [f"{what} names {name} twice" for what, name, count in counts if count > 1]
    rules = twice + [
        f"expectation {e.name}: it needs a condition or unique columns, and one of them only"
        for e in dataset.expectations
        if (e.condition is None) == (not e.unique)
    ]
    return [problem for problem, holds in wrong.items() if holds] + rules + list(_unreadable(dataset))


def _problems_of_merge(dataset: Dataset) -> Mapping[str, bool]:
    merges, order_by, delete_when = dataset.publish is Mode.MERGE, dataset.order_by, dataset.delete_when
    return {
        "a merge needs keys, and nothing else has them": merges != bool(dataset.keys),
        "order_by says which row of a key counts, which only a merge asks": bool(order_by) and not merges,
        "delete_when says which rows of a merge delete others, and nothing else has it": bool(delete_when)
        and not merges,
        "tombstones is a period such as 30d or 12h": dataset.tombstones is not None
        and dataset.tombstone_period is None,
        "tombstones are of a merge with order_by and delete_when": dataset.tombstones is not None
        and not (order_by and delete_when),
    }


def _duration(text: str | None) -> timedelta | None:
    """The time of a text such as 7d or 12h; None for any other."""
    match = _DURATION.fullmatch(text or "")
    return None if match is None else int(match[1]) * _UNITS[match[2]]


def _unreadable(dataset: Dataset) -> Iterator[str]:
    """What is wrong with the text of conditions: without the columns, before anything runs."""
    conditions = [(f"expectation {e.name}", e.condition) for e in dataset.expectations]
    for what, condition in (*conditions, ("delete_when", dataset.delete_when)):
        try:
            if condition is not None:
                to_expression(condition)
        except InvalidRequestError as error:
            yield f"{what}: {error.message}"


def _with_table_name(document: Any, error: msgspec.ValidationError) -> str:
    """The text of an error, which does not say of which table it is, with the table's name."""
    tables = document.get("tables") if isinstance(document, dict) else None
    for name, dataset in tables.items() if isinstance(tables, dict) else ():
        try:
            msgspec.convert(dataset, Dataset)
        except msgspec.ValidationError as of_table:
            return f"table {name}: {of_table}"
    return str(error)


def _fix_of(problem: str) -> str:
    """What to write in place of a word that a configuration does not have, or has a choice for."""
    if "enum" in problem:
        return _CHOICES
    unknown = _UNKNOWN_FIELD.search(problem)
    if unknown is None:
        return CORRECT
    of_table = Expectation if ".expectations[" in problem else Dataset
    return choices(unknown[1], (of_table if problem.startswith("table ") else PipelineConfig).__struct_fields__)


_UNKNOWN_FIELD = re.compile("unknown field `([^`]*)`")
_CHOICES = f"publish is {', '.join(Mode)}; action is {', '.join(Action)}"
