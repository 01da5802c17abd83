"""The API asked at random within and beyond what its document allows: no 5xx, and every answer as documented."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.routing import Route

from lakeview.sharing.server.app import application
from tests.server.conftest import Api, RunningServer

DOCUMENT: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[2] / "docs" / "sharing-openapi.yaml").read_text(encoding="utf-8")
)
OPERATIONS = [
    item[method]["operationId"] for item in DOCUMENT["paths"].values() for method in item if method != "parameters"
]
EXAMPLES = 25
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance",
)  # fmt: skip


@cache
def operations() -> dict[str, Any]:
    """The operations of the document by their ids. (All processes of a run import this file, and one asks: it alone
    takes the second that schemathesis needs.)"""
    import schemathesis

    schema: Any = schemathesis.openapi.from_dict(DOCUMENT)
    results = (result.ok() for result in schema.get_all_operations())
    return {operation.definition.raw["operationId"]: operation for operation in results}


def ask(name: str, server: RunningServer, place: Callable[[Any], dict[str, str]] | None = None) -> None:
    """Cases within and beyond what the document allows, and those with its examples; at that place where there is
    one."""
    operation = operations()[name]
    from schemathesis import GenerationMode, checks
    from schemathesis.generation.hypothesis.examples import generate_one

    expected = [checks.CHECKS.get_one(check) for check in CHECKS]

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=st.one_of([operation.as_strategy(generation_mode=mode) for mode in GenerationMode]))
    def answers_as_documented(case: Any) -> None:
        if place is not None:
            case.path_parameters = place(case)
        headers = {"Authorization": f"Bearer {server.token}"}
        case.call_and_validate(base_url=server.url, headers=headers, checks=expected, timeout=30)

    test = answers_as_documented
    for strategy in operation.get_strategies_from_examples():
        test = example(case=generate_one(strategy))(test)
    test()


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_answers_as_documented(name: str, running: RunningServer) -> None:
    ask(name, running)


TABLES = ["months", "fed", "vectors", "mapped", "empty", "broken", "odd", "some"]


@pytest.mark.parametrize("name", ["getMetadata", "queryTable", "getChanges", "getVersion"])
def test_tables_that_are_there_answer_as_documented(name: str, running: RunningServer) -> None:
    def place(case: Any) -> dict[str, str]:
        at = sum(map(ord, repr(case.query) + repr(case.body))) % len(TABLES)
        return {"share": "lake", "schema": "default", "table": TABLES[at]}

    ask(name, running, place)


def test_the_document_names_every_route_and_no_other(api: Api) -> None:
    served = {
        (route.path.replace(":path", ""), method.lower())
        for route in application(api.hub).routes
        if isinstance(route, Route)
        for method in route.methods or ()
    }
    documented = {
        (path, method) for path, item in DOCUMENT["paths"].items() for method in item if method != "parameters"
    }
    implied = {(path, "head") for path, method in served if method == "get"}
    assert documented | implied == served
