"""A function that only hands its parameters on to another one has a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.contracts.test_complexity import FILES, ROOT

REASONS = {
    "lakeview/iceberg/write/commits.py unsupported_table": "a default that its callers share",
    "lakeview/jobs/job.py wait": "the event is the job's own",
    "lakeview/spark/dml/table.py clone": "a name of Delta's DeltaTable",
    "lakeview/spark/dml/table.py cloneAtVersion": "a name of Delta's DeltaTable",
    "lakeview/spark/dml/table.py upgradeTableProtocol": "a name of Delta's DeltaTable",
    "lakeview/spark/stream_writer.py write": "a name of Spark's DataSourceStreamWriter",
    "lakeview/storage/interface.py put_hint": "a default that a store overrides",
    "lakeview/storage/remote.py seek": "a name of Python's RawIOBase",
}


def forwarders(source: str) -> Iterator[str]:
    """The functions whose body is one call that has their parameters, at least one, and nothing else; no caches, which
    a decorator makes of such functions."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if any("cache" in ast.unparse(decorator) for decorator in node.decorator_list):
            continue
        body = node.body[ast.get_docstring(node) is not None :]
        match body:
            case [ast.Return(value=ast.Call() as call)] | [ast.Expr(value=ast.Call() as call)]:
                given = [*call.args, *(keyword.value for keyword in call.keywords)]
            case _:
                continue
        parameters = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)} - {"self", "cls"}
        names = {value.id for value in given if isinstance(value, ast.Name)} - {"self"}
        plain = all(isinstance(value, ast.Name) for value in given)
        of_a_call = any(isinstance(part, ast.Call) for part in ast.walk(call.func))
        if parameters and plain and names == parameters and not of_a_call:
            yield node.name


def test_a_function_that_only_forwards_its_parameters_has_a_reason() -> None:
    names = {f"{p.relative_to(ROOT)} {name}" for p in FILES for name in forwarders(p.read_text(encoding="utf-8"))}
    assert names == set(REASONS)


@pytest.mark.parametrize(
    ("source", "forwards"),
    [
        ("def f(a, *, b):\n    'Doc.'\n    return g(a, b=b)", True),
        ("def f(self, a):\n    self.inner.g(a)", True),
        ("def f(a):\n    return g(a, 1)", False),
        ("def f(a, b):\n    return g(a)", False),
        ("def f():\n    return g()", False),
        ("def f(a):\n    return g().h(a)", False),
        ("@cache_values(entries=4)\ndef f(a):\n    return g(a)", False),
        ("@final\ndef f(a):\n    return g(a)", True),
    ],
)
def test_a_forwarder_is_reported(source: str, forwards: bool) -> None:
    assert list(forwarders(source)) == ["f"] * forwards
