"""The tree of a condition: comparisons of a column with constants, joined by AND and OR; NOT is pushed to the leaves.

The only home of what is done to a condition without looking at data: negating, splitting at AND, joining, renaming.
Whatever the tree has no form for is `Unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

Path = tuple[str, ...]
"""A column's name, below the names of the structs that hold it."""

OPPOSITE: Mapping[str, str] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""The comparison that is true where this one is false."""

MIRRORED: Mapping[str, str] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The same comparison with its sides exchanged."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column op value`, op one of = != < <= > >=; never true where the column is null."""

    path: Path
    op: str
    value: pl.Series


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column is null, or (`is_negated`) is not."""

    path: Path
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class IsIn:
    """The column equals one of the values, or (`is_negated`) none of them.

    `is_widened`: the column is cast to 64-bit integers first, which changes nothing if it holds narrower ones.
    """

    path: Path
    values: pl.Series
    is_negated: bool = False
    is_widened: bool = False


@dataclass(frozen=True, slots=True)
class StartsWith:
    """The text column begins with a prefix."""

    path: Path
    prefix: str


@dataclass(frozen=True, slots=True)
class And:
    """Both hold."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Or:
    """One holds."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Constant:
    """True, false or null for every row."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything the tree has no word for."""


Node = Comparison | IsNull | IsIn | StartsWith | And | Or | Constant | Unknown

Leaf = Comparison | IsNull | IsIn | StartsWith | Constant | Unknown


def negate(node: Node) -> Node:
    """Returns NOT of a tree in SQL's logic of three values: null where the tree is null, as a leaf itself is."""
    match node:
        case And(left, right):
            return Or(negate(left), negate(right))
        case Or(left, right):
            return And(negate(left), negate(right))
        case Comparison(path, "=", value) if value.dtype == pl.Boolean():
            return Comparison(path, "=", ~value)
        case Comparison(path, op, value):
            return Comparison(path, OPPOSITE[op], value)
        case IsNull() | IsIn():
            return replace(node, is_negated=not node.is_negated)
        case Constant(value):
            return Constant(None if value is None else not value)
    return Unknown()


def complement(node: Node) -> Node:
    """Returns the tree that is true of the rows of which this one is not true: of those where it is false or null."""
    match node:
        case And(left, right):
            return Or(complement(left), complement(right))
        case Or(left, right):
            return And(complement(left), complement(right))
        case Comparison(path, _, values) | IsIn(path, values) if values.null_count() == 0:
            return Or(negate(node), IsNull(path))
        case IsNull():
            return negate(node)
        case Constant(value):
            return Constant(value is not True)
    return Unknown()


def conjuncts(node: Node) -> Iterator[Node]:
    """Yields the conditions that a tree joins by AND at its top, in order; the tree alone where it joins none."""
    if isinstance(node, And):
        yield from conjuncts(node.left)
        yield from conjuncts(node.right)
    else:
        yield node


def join(kind: type[And] | type[Or], parts: Sequence[Node]) -> Node:
    """Returns one or more conditions as one, the tree as flat as can be: it is walked recursively."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return kind(join(kind, parts[:middle]), join(kind, parts[middle:]))


def map_leaves(node: Node, function: Callable[[Leaf], Node]) -> Node:
    """Returns the tree with each leaf replaced by what `function` returns for it."""
    if isinstance(node, And | Or):
        return replace(node, left=map_leaves(node.left, function), right=map_leaves(node.right, function))
    return function(node)


def leaves(node: Node) -> Iterator[Leaf]:
    """Yields the leaves of a tree, from left to right."""
    if isinstance(node, And | Or):
        yield from leaves(node.left)
        yield from leaves(node.right)
    else:
        yield node


def paths(node: Node) -> Iterator[Path]:
    """Yields the columns that a tree names, once for each leaf."""
    for leaf in leaves(node):
        if not isinstance(leaf, Constant | Unknown):
            yield leaf.path
