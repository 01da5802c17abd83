"""What a REST catalog answers and should not: settings that reach too far, lists that are missing or have no end."""

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakeview as lv
from lakeview.model.errors import (
    AccessDeniedError,
    InvalidRequestError,
    MissingExtraError,
    StoreUnavailableError,
)
from tests.builders.catalogs import RestState, dripping_server, newest, refusal, rest_catalog, table

ORDERS = "catalog://prod/sales.orders"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestState]:
    """A catalog by the name `prod` with one table of the rows 0 and 1."""
    orders = newest(table(tmp_path / "orders", rows=2))
    catalog_state = RestState([("sales",)], {("sales", "orders"): orders})
    with rest_catalog(catalog_state) as address:
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", address)
        monkeypatch.setattr("lakeview.storage.retries.back_off", lambda *_, **__: None)
        yield catalog_state


def ids() -> list[int]:
    return sorted(lv.open_table(ORDERS).scan().collect()["id"].to_list())


def test_a_catalog_cannot_have_a_class_imported_and_called(state: RestState, tmp_path: Path) -> None:
    """pyiceberg makes an object of any class that the setting `auth` names."""
    arguments = {"args": ["touch", str(tmp_path / "called")]}
    state.settings = {"auth": {"type": "custom", "impl": "subprocess.Popen", "custom": arguments}}
    assert ids() == [0, 1]
    assert not (tmp_path / "called").exists()


def test_a_catalog_cannot_choose_the_certificates_it_is_trusted_by(state: RestState) -> None:
    state.settings = {"ssl": {"cabundle": False, "client": {"cert": "/etc/hostname"}}}
    assert ids() == [0, 1]


def test_a_catalog_cannot_have_the_clients_secret_sent_elsewhere(
    state: RestState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__CREDENTIAL", "me:s3cr3t")
    state.client_secret, state.token = "s3cr3t", "t0ken"
    elsewhere = RestState(client_secret="s3cr3t", token="t0ken")
    with rest_catalog(elsewhere) as address:
        state.settings = {"oauth2-server-uri": f"{address}/v1/oauth/tokens"}
        assert ids() == [0, 1]
    assert not elsewhere.requests


@pytest.fixture
def aws_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that boto3 finds on this machine."""
    for name, value in (
        ("ACCESS_KEY_ID", "AKIDHERE"),
        ("SECRET_ACCESS_KEY", "s3cr3t"),
        ("DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)


SIGNING = {
    "rest.sigv4-enabled": "true", "rest.signing-name": "iam", "rest.signing-region": "aws-global",
    "header.Host": "iam.amazonaws.com", "client.profile-name": "admin",
}  # fmt: skip


@pytest.mark.usefixtures("aws_keys")
def test_a_catalog_cannot_have_requests_signed_with_the_aws_keys_of_this_machine(state: RestState) -> None:
    """It could send them on: signed for a service and a host that it named itself."""
    state.settings = SIGNING
    assert ids() == [0, 1]
    assert not [text for headers in state.headers for text in headers.values() if "AKIDHERE" in text]


@pytest.fixture
def signing(aws_keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own configuration has its requests signed."""
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__REST__SIGV4_ENABLED", "true")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__REST__SIGNING_NAME", "glue")


@pytest.mark.usefixtures("signing")
def test_signed_requests_are_for_the_service_and_the_host_that_the_client_named(state: RestState) -> None:
    state.settings = SIGNING | {"rest.sigv4-enabled": "false"}
    assert ids() == [0, 1]
    signatures = [headers["Authorization"] for headers in state.headers]
    assert len(signatures) == 2
    assert all("/us-east-1/glue/aws4_request" in text for text in signatures)
    assert all(headers["Host"].startswith("127.0.0.1:") for headers in state.headers)


@pytest.mark.usefixtures("signing")
def test_no_request_is_signed_for_another_server(state: RestState) -> None:
    elsewhere = RestState()
    with rest_catalog(elsewhere) as address:
        state.settings = {"uri": address}
        with pytest.raises(InvalidRequestError, match="gives another server, for which requests would be signed"):
            ids()
        state.settings, state.redirect = {}, f"{address}/elsewhere"
        state.answer_at = "/tables/", (307, {})
        with pytest.raises(StoreUnavailableError, match="TooManyRedirects"):
            ids()
    assert not elsewhere.headers


def test_without_aws_keys_a_request_to_be_signed_is_an_error_at_once(
    state: RestState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__REST__SIGV4_ENABLED", "true")
    for name, value in (("AWS_EC2_METADATA_DISABLED", "true"), ("HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("lakeview.model.limits.CATALOG_ANSWER_SECONDS", 5)
    with pytest.raises(InvalidRequestError, match="AttributeError"):
        ids()
    assert not state.headers


def test_null_takes_a_setting_away(state: RestState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__REST_PAGE_SIZE", "5")
    state.settings = {"rest-page-size": None, "uri": None}
    assert ids() == [0, 1]
    assert lv.find_tables("catalog://prod").height == 1


@pytest.mark.parametrize("settings", [{"prefix": 5}, {"header.X-A": ["b"]}], ids=["a number", "a list"])
def test_settings_that_are_no_texts_are_refused_by_name(state: RestState, settings: dict[str, Any]) -> None:
    state.settings = settings
    with pytest.raises(InvalidRequestError, match=f"gives settings that are no texts: '{next(iter(settings))}'"):
        ids()


CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "no defaults": {"defaults": None, "overrides": {}},
    "no overrides": {"defaults": {}, "overrides": None},
    "a separator that is a number": {"defaults": {}, "overrides": {"namespace-separator": 5}},
}


@pytest.mark.parametrize("answer", CONFIGURATIONS.values(), ids=list(CONFIGURATIONS))
def test_a_configuration_of_other_types_is_an_error_of_the_catalog(state: RestState, answer: dict[str, Any]) -> None:
    state.answer_at = "/v1/config", (200, answer)
    with pytest.raises(InvalidRequestError, match="the catalog prod could not be asked: "):
        ids()


def test_a_setting_whose_package_is_missing_is_no_bare_import_error(
    state: RestState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__REST__SIGV4_ENABLED", "true")
    with pytest.raises(MissingExtraError, match="whose package is not installed"):
        ids()


TOP_LEVEL = {
    "a bad request": (400, "could not be asked: BadRequestException: of the warehouse"),
    "not found": (404, "has no list of namespaces where it was asked"),
    "not implemented": (501, "could not be asked: NotImplementedError"),
}


@pytest.mark.parametrize(("status", "message"), TOP_LEVEL.values(), ids=list(TOP_LEVEL))
def test_a_catalog_that_does_not_list_its_namespaces_is_not_called_empty(
    state: RestState, status: int, message: str
) -> None:
    state.answer_at = r"/namespaces(\?|$)", refusal(status, "BadRequestException", "of the warehouse")
    with pytest.raises(InvalidRequestError, match=message):
        lv.find_tables("catalog://prod")


def test_a_namespace_without_levels_inside_has_its_own_tables(state: RestState) -> None:
    state.answer_at = "parent=", refusal(400, "BadRequestException", "no levels")
    assert lv.find_tables("catalog://prod")["name"].to_list() == ["sales.orders"]


MISSING = refusal(404, "NoSuchNamespaceException", "no such namespace")


@pytest.mark.parametrize("path", ["namespaces/late/tables", "parent=late"], ids=["its tables", "what is inside it"])
def test_a_namespace_that_is_listed_and_not_found_is_an_error(state: RestState, path: str) -> None:
    state.namespaces += [("late",), ("late", "inner")]
    state.tables["late", "orders"] = None
    state.answer_at = path, MISSING
    with pytest.raises(InvalidRequestError, match="lists the namespace late, and answers that there is none"):
        lv.find_tables("catalog://prod")


@pytest.mark.parametrize("path", ["namespaces/late/tables", "parent=late"], ids=["its tables", "what is inside it"])
def test_a_namespace_that_is_dropped_during_a_listing_holds_nothing(state: RestState, path: str) -> None:
    state.namespaces += [("late",)]
    state.before = lambda asked: state.namespaces.remove(("late",)) if path in asked else None
    assert lv.find_tables("catalog://prod")["name"].to_list() == ["sales.orders"]
    assert state.namespaces == [("sales",)]


def test_a_listing_that_names_a_page_again_is_refused(state: RestState) -> None:
    state.endless = True
    for address in ("catalog://prod", "catalog://prod/sales"):
        with pytest.raises(InvalidRequestError, match="a listing of the catalog prod does not end"):
            lv.find_tables(address)


def test_a_listing_of_too_many_pages_is_refused(state: RestState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.model.limits.CATALOG_PAGES", 3)
    state.tables |= {("sales", f"t{number}"): None for number in range(8)}
    with pytest.raises(InvalidRequestError, match="or there are more than 3"):
        lv.find_tables("catalog://prod/sales")
    monkeypatch.setattr("lakeview.model.limits.CATALOG_PAGES", 5)
    assert lv.find_tables("catalog://prod/sales").height == 9


def test_the_size_of_pages_is_asked_for_as_configured(state: RestState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__REST_PAGE_SIZE", "7")
    assert lv.find_tables("catalog://prod").height == 1
    assert state.sizes == {"7"}


@pytest.mark.parametrize("field", ["config", "storage-credentials"])
def test_a_table_whose_settings_are_null_has_none(state: RestState, field: str) -> None:
    location = state.tables["sales", "orders"]
    state.answer_at = "/tables/", (200, {"metadata-location": location, field: None})
    assert ids() == [0, 1]


def test_an_answer_that_is_nested_too_deep_is_an_error_of_the_catalog(state: RestState) -> None:
    deep = b'{"metadata-location": "/x", "metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    state.answer_at = "/tables/", (200, deep)
    with pytest.raises(InvalidRequestError, match="the catalog prod could not be asked: RecursionError"):
        ids()


SECRETS = {
    "characters of URLs": {"credential": "me:s3/cr+t w&rd"},
    "a header": {"header.Authorization": "Basic bWU6cHc="},
}


@pytest.mark.parametrize("properties", SECRETS.values(), ids=list(SECRETS))
def test_secrets_are_not_shown_in_the_spelling_that_was_sent(state: RestState, properties: dict[str, str]) -> None:
    state.client_secret, state.token = "another", "t0ken"
    with pytest.raises(AccessDeniedError) as caught:
        lv.open_table(ORDERS, catalog=properties)
    text = "".join(traceback.format_exception(caught.value))
    assert not [word for word in ("s3%2Fcr", "cr%2Bt", "w%26rd", "bWU6cHc") if word in text]


def test_a_token_that_the_catalog_gave_is_not_shown(state: RestState) -> None:
    state.client_secret, state.token = "s3cr3t", "short"
    opened_table = lv.open_table(ORDERS, catalog={"credential": "me:s3cr3t"})
    state.answer_at = "/tables/", refusal(403, "ForbiddenException", "not with Bearer short")
    with pytest.raises(AccessDeniedError, match=r"ForbiddenException: not with Bearer \*\*\*\n"):
        opened_table.refresh()


def test_an_answer_that_is_too_large_is_refused(state: RestState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.model.limits.CATALOG_ANSWER_BYTES", 1 << 20)
    state.raw = b'{"defaults": {}, "overrides": {}, "more": "' + b"x" * (1 << 20) + b'"}'
    with pytest.raises(InvalidRequestError, match="the catalog prod answers one question with more than 1 MiB"):
        ids()


def test_all_answers_to_a_listing_are_limited_together(state: RestState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.model.limits.CATALOG_ANSWER_BYTES", 3000)
    state.page = 1
    state.tables = {("sales", f"t{number}"): None for number in range(60)}
    with pytest.raises(InvalidRequestError, match="answers one question with more than"):
        lv.find_tables("catalog://prod")


BEGINNINGS = {"a header": b"HTTP/1.0 200 OK\r\nX-Long: ", "a body": b"HTTP/1.0 200 OK\r\n\r\n"}


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=list(BEGINNINGS))
def test_an_answer_that_does_not_end_is_an_error(beginning: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server never falls silent for as long as a socket waits."""
    monkeypatch.setattr("lakeview.model.limits.CATALOG_ANSWER_SECONDS", 0.3)
    monkeypatch.setattr("lakeview.storage.retries.back_off", lambda *_, **__: None)
    with dripping_server(beginning) as address:
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", address)
        with pytest.raises(StoreUnavailableError, match="the catalog prod did not answer: its answer did not end"):
            ids()


def test_a_listing_that_takes_too_long_is_an_error(state: RestState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeview.model.limits.CATALOG_LISTING_SECONDS", 0)
    with pytest.raises(StoreUnavailableError, match="its answer did not end in time"):
        lv.find_tables("catalog://prod")
