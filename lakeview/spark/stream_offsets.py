"""What offsets of Delta and Iceberg streams have in common: where the stream began, and their form in checkpoints."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Start: TypeAlias = list[Any]
"""Version or snapshot, index and initial of an offset, as JSON gives them."""


def is_start(rest: Mapping[str, Any]) -> bool:
    """Whether the other keys of an offset say where its stream began, or nothing."""
    match rest:
        case {"first": [int(), int(), bool()]} if len(rest) == 1:
            return True
    return not rest


def offset_json(offset: "DataclassInstance") -> dict[str, Any]:
    """An offset as a checkpoint records it: one that says no beginning stays as it was."""
    return {name: value for name, value in asdict(offset).items() if value is not None}
