"""The API asked at random within and beyond what its document allows: no 5xx, and every answer as documented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, settings
from schemathesis import checks
from starlette.routing import Route

from lakeview.sharing.server.app import application
from tests.server.conftest import Api, RunningServer

DOCUMENT: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[2] / "docs" / "sharing-openapi.yaml").read_text(encoding="utf-8")
)
schema = schemathesis.openapi.from_dict(DOCUMENT)
schema.config.phases.coverage.enabled = False  # hundreds of cases an operation: the random ones are bounded

EXAMPLES = 25
CHECKS = [
    checks.not_a_server_error,
    checks.CHECKS.get_one("status_code_conformance"),
    checks.CHECKS.get_one("content_type_conformance"),
    checks.CHECKS.get_one("response_schema_conformance"),
    checks.CHECKS.get_one("response_headers_conformance"),
]


@pytest.fixture(scope="module")
def server_under_test(running: RunningServer) -> RunningServer:
    return running


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_operation_answers_as_documented(case: Any, server_under_test: RunningServer) -> None:
    case.call_and_validate(
        base_url=server_under_test.url,
        headers={"Authorization": f"Bearer {server_under_test.token}"},
        checks=CHECKS,
        timeout=30,
    )


TABLES = ["months", "fed", "vectors", "mapped", "empty", "broken", "odd", "some"]


@schema.include(operation_id=["getMetadata", "queryTable", "getChanges", "getVersion"]).parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_tables_that_are_there_answer_as_documented(case: Any, server_under_test: RunningServer) -> None:
    at = sum(map(ord, repr(case.query) + repr(case.body))) % len(TABLES)
    case.path_parameters = {"share": "lake", "schema": "default", "table": TABLES[at]}
    case.call_and_validate(
        base_url=server_under_test.url,
        headers={"Authorization": f"Bearer {server_under_test.token}"},
        checks=CHECKS,
        timeout=30,
    )


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
