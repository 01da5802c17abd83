"""A tree over integers to one that does not wrap around: each operation is given the bits that its result may need.

polars computes with the bits of a column: -128 is 127 + 1 of a tinyint, `MONTH(day) * 100` is -80, `LENGTH(name) - 5`
is four billion. The range of every part follows from the types of the columns, and with it, before any row is read, the
bits: 64 where they do, 128 where they may not.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp
from sqlglot.expressions import DType

from lakeview.model.data_types import DataType, PrimitiveType


class Integers(NamedTuple):
    """The values that a part may have, and the bits that polars computes it with: 0 for a constant, which takes those
    of what it meets."""

    low: int
    high: int
    bits: int

    def fit(self, bits: int) -> bool:
        """True if all of them are integers of so many bits."""
        end: int = 2 ** (bits - 1)
        return -end <= self.low and self.high < end


def _signed_range(bits: int) -> Integers:
    return Integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, bits)


_COLUMNS: dict[DataType, Integers] = {
    PrimitiveType(name): _signed_range(bits)
    for name, bits in {"byte": 8, "short": 16, "integer": 32, "long": 64}.items()
}
_CASTS: dict[DType, Integers] = {
    **{t: _signed_range(bits) for t, bits in zip((DType.TINYINT, DType.SMALLINT, DType.INT), (8, 16, 32), strict=True)},
    **{t: _signed_range(bits) for t, bits in zip((DType.BIGINT, DType.INT128), (64, 128), strict=True)},
    DType.UTINYINT: Integers(0, 2**8 - 1, 8),
    DType.USMALLINT: Integers(0, 2**16 - 1, 16),
    DType.UINT: Integers(0, 2**32 - 1, 32),
    DType.UBIGINT: Integers(0, 2**64 - 1, 64),
}
_LENGTH = Integers(0, 2**32 - 1, 32)
_PART = Integers(-(2**31), 2**31 - 1, 8)  # of a date: a month is a tinyint to polars, a year is not
_FUNCTIONS: dict[type[exp.Expr], Integers] = {
    **dict.fromkeys((exp.Length, exp.StrPosition), _LENGTH),
    **dict.fromkeys(
        (exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.Hour, exp.Minute, exp.Second), _PART
    ),
}
_REAL_PARTS = ("MILLISECOND", "MICROSECOND", "EPOCH")


def without_overflow(tree: exp.Expr, columns: Mapping[int, DataType]) -> exp.Expr:
    """Returns the tree with the operands of integer operations cast to the bits that the result may need. An integer
    that it is itself is cast back to 64: polars refuses to cast what does not fit. The tree is changed in place.

    `columns`: types of the nodes that are columns, by the nodes' ids. Of three bigint factors the product of two has to
    be a bigint, as to other engines; decimals and floating-point numbers are left as they are.
    """
    ranges: dict[int, Integers] = {}
    for node in reversed(list(tree.walk())):  # operands before what is made of them
        integers = _COLUMNS.get(columns[id(node)]) if id(node) in columns else _integers(node, ranges)
        if type(node) is exp.TryCast and not node.args.get("safe") and integers is not None and id(node.this) in ranges:
            # Spark's CAST wraps around or fails, by its settings: of an integer it is never null as its TRY_CAST is
            strict = exp.Cast(this=node.this, to=node.to)
            tree, node = (strict if node is tree else tree), node.replace(strict)
        if integers is not None:
            ranges[id(node)] = integers
    whole = ranges.get(id(tree))
    return tree if whole is None or (whole.bits <= 64 and whole.fit(64)) else cast_in_place(tree, DType.BIGINT)


def _integers(node: exp.Expr, ranges: Mapping[int, Integers]) -> Integers | None:
    if isinstance(node, exp.Literal):
        return _constant(node)
    if isinstance(node, exp.Cast):  # and TryCast
        return _CASTS.get(node.to.this)
    if isinstance(node, exp.Pow):
        return _power(node, ranges.get(id(node.this)), ranges.get(id(node.expression)))
    if type(node) in _OPERATIONS:
        return _range_of(node, ranges)
    if isinstance(node, exp.Paren):
        return ranges.get(id(node.this))
    if type(node) in _CHOICES and node.arg_key != "ifs":  # branches of a CASE are parts of that
        return _choice([p for p in _CHOICES[type(node)](node) if p is not None and not isinstance(p, exp.Null)], ranges)
    return _of_function(node)


def _constant(node: exp.Literal) -> Integers | None:
    number = int(node.name) if not node.is_string and node.name.isdecimal() else None
    return Integers(number, number, 0) if number is not None and number < 2**63 else None


def _of_function(node: exp.Expr) -> Integers | None:
    name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, exp.Extract) or name == "DATE_PART":
        field = node if isinstance(node, exp.Extract) else node.expressions[0]
        return None if field.name.upper() in _REAL_PARTS else _PART
    return _LENGTH if name == "OCTET_LENGTH" else _FUNCTIONS.get(type(node))


def _choice(parts: Sequence[exp.Expr], ranges: Mapping[int, Integers]) -> Integers | None:
    integers = [r for part in parts if (r := ranges.get(id(part))) is not None]
    if not integers or len(integers) < len(parts):
        return None
    bits = max(8, *(r.bits for r in integers))
    for part, constant in zip(parts, integers, strict=True):
        if constant.bits == 0 and not constant.fit(8):  # polars takes -2147483647 for a smallint where -255 is another
            cast_in_place(part, DType.BIGINT)
            bits = max(bits, 64)
    return Integers(min(r.low for r in integers), max(r.high for r in integers), bits)


_CHOICES: dict[type[exp.Expr], Callable[[exp.Expr], Sequence[exp.Expr | None]]] = {
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), lambda node: [node.this, *node.expressions]),
    **dict.fromkeys((exp.Nullif, exp.Sign, exp.Round, exp.Ceil, exp.Floor), lambda node: [node.this]),
    exp.If: lambda node: [node.args["true"], node.args.get("false")],
    exp.Case: lambda node: [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")],
}
"""Nodes whose value is that of a part of theirs, or no larger."""


def _product(a: Integers, b: Integers) -> tuple[int, int]:
    corners = [x * y for x in a[:2] for y in b[:2]]
    return min(corners), max(corners)


def _remainder(a: Integers, b: Integers) -> tuple[int, int]:
    most = min(max(-a.low, a.high), max(-b.low, b.high))
    return -most, most


def _bits(a: Integers, b: Integers) -> tuple[int, int]:
    return _signed_range(next(bits for bits in (64, 128) if a.fit(bits) and b.fit(bits)))[:2]


_OPERATIONS: dict[type[exp.Expr], Callable[..., tuple[int, int]]] = {
    exp.Add: lambda a, b: (a.low + b.low, a.high + b.high),
    exp.Sub: lambda a, b: (a.low - b.high, a.high - b.low),
    exp.Mul: _product,
    exp.Neg: lambda a: (-a.high, -a.low),
    exp.Abs: lambda a: (0, max(-a.low, a.high)),
    exp.Mod: _remainder,
    exp.IntDiv: lambda _a, _b: _signed_range(64)[:2],  # polars casts what it finds to 64 bits
    exp.BitwiseAnd: _bits,
    exp.BitwiseOr: _bits,
}


def _range_of(node: exp.Expr, ranges: Mapping[int, Integers]) -> Integers | None:
    parts = [part for part in (node.args.get("this"), node.args.get("expression")) if part is not None]
    operands = [r for part in parts if (r := ranges.get(id(part))) is not None]
    if len(operands) < len(parts):
        return None
    low, high = _OPERATIONS[type(node)](*operands)
    if not Integers(low, high, 128).fit(128):
        parts, operands = _narrow(parts, operands)
        return _widen(parts, operands, Integers(*_OPERATIONS[type(node)](*operands), 128))
    if isinstance(node, exp.Neg) and operands[0].bits == 0:
        return Integers(low, high, 0)
    is_wide = not Integers(low, high, 64).fit(64) or any(r.bits == 128 for r in operands)
    if is_wide and isinstance(node, exp.IntDiv):
        return Integers(low, high, 64)
    return _widen(parts, operands, Integers(low, high, 128 if is_wide else 64))


def _narrow(parts: list[exp.Expr], operands: list[Integers]) -> tuple[list[exp.Expr], list[Integers]]:
    """The parts, those of more than 64 bits cast to a bigint, and their ranges."""
    fits = [operand.fit(64) for operand in operands]
    return (
        [part if fit else cast_in_place(part, DType.BIGINT) for part, fit in zip(parts, fits, strict=True)],
        [operand if fit else _signed_range(64) for operand, fit in zip(operands, fits, strict=True)],
    )


def _widen(parts: Sequence[exp.Expr], operands: Sequence[Integers], result: Integers) -> Integers:
    """Casts what has fewer bits than the result, and of constants alone the first; polars casts the others."""
    narrow = [p for p, r in zip(parts, operands, strict=True) if 0 < r.bits < result.bits]
    for part in narrow or (parts[:1] if all(r.bits == 0 for r in operands) else ()):
        cast_in_place(part, DType.INT128 if result.bits == 128 else DType.BIGINT)
    return result


def _power(node: exp.Expr, base: Integers | None, exponent: Integers | None) -> Integers | None:
    """A power with a constant exponent is an integer where it fits; others are doubles, as all of them are in Spark."""
    if base is None:
        return None
    if exponent is not None and 0 <= exponent.low == exponent.high <= 126:
        powers = [0, base.low**exponent.low, base.high**exponent.low]
        for bits, type_ in ((64, DType.BIGINT), (128, DType.INT128)):
            if base.bits <= bits and (power := Integers(min(powers), max(powers), bits)).fit(bits):
                cast_in_place(node.this, type_)
                return power
    cast_in_place(node.this, DType.DOUBLE)
    return None


def cast_in_place(node: exp.Expr, type_: DType) -> exp.Expr:
    """Puts a cast in the node's place, above it."""
    cast = exp.Cast(to=exp.DataType(this=type_))
    node.replace(cast)
    cast.set("this", node)
    return cast
