"""Tables of a REST catalog: found by name, read from their own metadata, followed as they change, refused in words."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lakeview as lv
from lakeview.discovery import TABLES
from lakeview.model.config import Config
from lakeview.model.errors import (
    AccessDeniedError,
    CorruptTableError,
    InvalidRequestError,
    LakeviewError,
    NotATableError,
    StoreUnavailableError,
    UnsupportedTableError,
)
from lakeview.model.table import Table
from tests.builders.catalogs import RestState, newest, rest_catalog, table, without_hint
from tests.builders.opening import open_iceberg_table

ORDERS = "catalog://prod/sales.orders"
SECRET = "s3cr3t-word"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying again costs no time."""
    monkeypatch.setattr("lakeview.storage.retries.back_off", lambda *_, **__: None)


@pytest.fixture
def state(tmp_path: Path) -> RestState:
    """A catalog with one table of two rows, `sales.orders`, which lies in `lake/orders`."""
    orders = newest(table(tmp_path / "lake" / "orders", rows=2))
    return RestState([("sales",)], {("sales", "orders"): orders}, views=[("sales", "big")])


@pytest.fixture
def uri(state: RestState, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The catalog's address, configured by the name `prod` as pyiceberg has it configured."""
    with rest_catalog(state) as address:
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", address)
        yield address


def ids(opened_table: Any) -> list[int]:
    return sorted(opened_table.scan().collect()["id"].to_list())


def test_a_table_is_opened_by_its_name(state: RestState, uri: str) -> None:
    opened_table = lv.open_table(ORDERS)
    assert isinstance(opened_table, Table)
    assert (opened_table.address, opened_table.format, ids(opened_table)) == (ORDERS, "iceberg", [0, 1])
    assert opened_table.snapshot().location == ORDERS
    assert state.requests == {"config": 1, "GET tables/table": 1}, "nothing else is asked"


@pytest.mark.parametrize("config", [{}, {"type": "rest"}], ids=["type inferred", "type given"])
def test_a_catalog_is_configured_in_three_places_and_the_nearest_counts(uri: str, config: dict[str, str]) -> None:
    assert ids(lv.open_table("catalog://one/sales.orders", catalog={"uri": uri, **config})) == [0, 1]
    own = Config(catalogs={"two": {"uri": uri}, "prod": {"uri": "http://127.0.0.1:9", **config}})
    assert ids(lv.open_table("catalog://two/sales.orders", config=own)) == [0, 1]
    assert ids(lv.open_table(ORDERS, catalog={"uri": uri}, config=own)) == [0, 1]
    assert ids(lv.open_table(ORDERS)) == [0, 1]


def test_refreshing_asks_the_catalog_once_and_opens_only_what_changed(state: RestState, uri: str) -> None:
    where = Path(str(state.tables["sales", "orders"])).parents[1]
    opened_table = open_iceberg_table(ORDERS)
    before = opened_table.storage.requests.copy()
    requests_before = state.requests.copy()
    assert not opened_table.refresh()
    assert state.requests - requests_before == {"GET tables/table": 1}
    assert opened_table.storage.requests == before

    grown = without_hint(table(where.parent / "grown", rows=3))
    (grown.root / "metadata").rename(where / "newer")  # a file that only the catalog says is current
    state.tables["sales", "orders"] = f"{where}/newer/{Path(newest_in(where / 'newer')).name}"
    assert opened_table.refresh()
    assert opened_table.latest_version == 1003
    assert opened_table.address == ORDERS


def newest_in(folder: Path) -> str:
    return str(max(folder.glob("v*.metadata.json"), key=lambda p: int(p.name[1:].partition(".")[0])))


def test_a_table_that_moved_is_followed_to_its_new_place(state: RestState, uri: str, tmp_path: Path) -> None:
    opened_table = lv.open_table(ORDERS)
    (tmp_path / "lake" / "orders").rename(tmp_path / "elsewhere")
    state.tables["sales", "orders"] = newest_of(tmp_path / "elsewhere")
    assert opened_table.refresh()
    assert ids(opened_table) == [0, 1]


def newest_of(root: Path) -> str:
    return newest_in(root / "metadata")


def test_a_table_that_was_dropped_says_so(state: RestState, uri: str) -> None:
    opened_table = lv.open_table(ORDERS)
    del state.tables["sales", "orders"]
    with pytest.raises(NotATableError) as caught:
        opened_table.refresh()
    assert caught.value.kind == "dropped"
    assert caught.value.message == (
        f"{ORDERS} is no longer in its catalog: it was dropped or renamed since it was opened"
    )
    assert ids(opened_table) == [0, 1], "what was opened can still be read"


def test_another_table_of_the_same_name_is_told(state: RestState, uri: str, tmp_path: Path) -> None:
    opened_table = lv.open_table(ORDERS)
    other = newest(table(tmp_path / "other"))
    text = Path(other).read_text()
    Path(other).write_text(text.replace("8d5c4a9e-0000", "8d5c4a9e-9999"))
    state.tables["sales", "orders"] = other
    with pytest.raises(CorruptTableError, match=f"{ORDERS} was the table .* and is .* now"):
        opened_table.refresh()


def test_tables_of_a_catalog_are_found_at_every_level(state: RestState, uri: str) -> None:
    state.namespaces += [("a",), ("a", "b c"), ("a", "b c", "d"), ("sales", "eu.west"), ("empty",), ("z",)]
    for names in [("a", "x"), ("a", "b c", "d", "y"), ("sales", "eu.west", "50% /off"), ("z", "1"), ("z", "2")]:
        state.tables[names] = None
    for number in range(5):
        state.tables["z", f"t{number}"] = None
    addresses = lv.find_tables("catalog://prod/")
    assert addresses.schema == TABLES
    assert addresses["name"].to_list() == [
        "a.b%20c.d.y", "a.x", "sales.eu%2Ewest.50%25%20%2Foff", "sales.orders",
        "z.1", "z.2", "z.t0", "z.t1", "z.t2", "z.t3", "z.t4",
    ]  # fmt: skip
    assert set(addresses["format"]) == {"iceberg"}
    assert ORDERS in addresses["address"]
    state.tables["sales", "eu.west", "50% /off"] = state.tables["sales", "orders"]
    inner = lv.find_tables("catalog://prod/sales.eu%2Ewest")
    assert inner["name"].to_list() == ["50%25%20%2Foff"]
    assert ids(lv.open_table(inner["address"][0])) == [0, 1]


def test_metadata_outside_the_allowed_roots_is_refused_with_the_root_to_add(uri: str, tmp_path: Path) -> None:
    with pytest.raises(AccessDeniedError) as caught:
        lv.open_table(ORDERS, config=Config(roots=(str(tmp_path / "other"),)))
    assert caught.value.message == f"{ORDERS} lies at {tmp_path}/lake/orders, outside the allowed roots"
    assert caught.value.fix == (
        f"add {tmp_path}/lake/orders or a folder above it to LAKEVIEW_ROOTS, if its tables may be read"
    )
    assert ids(lv.open_table(ORDERS, config=Config(roots=(str(tmp_path / "lake"),)))) == [0, 1]


def test_the_catalogs_location_follows_the_rules_for_moved_places(state: RestState, uri: str, tmp_path: Path) -> None:
    rules = {"s3://old/wh": str(tmp_path / "lake")}
    recorded = str(state.tables["sales", "orders"]).replace(str(tmp_path / "lake"), "s3a://old/wh")
    state.tables["sales", "orders"] = recorded
    assert ids(lv.open_table(ORDERS, relocate=rules)) == [0, 1]
    assert ids(lv.open_table(ORDERS, config=Config(relocate=rules))) == [0, 1]


LOCATIONS: dict[str, str | None] = {
    "none": None,
    "nothing": "",
    "a word": "garbage",
    "a folder": "/lake/orders/metadata/",
    "one that climbs": "/lake/../etc/x.metadata.json",
    "a null character": "/lake/\0.metadata.json",
    "no folder": "/v1.metadata.json",
    "no folder, as a URL": "file:///v1.metadata.json",
    "a bucket": "s3://lake",
}


@pytest.mark.parametrize("location", LOCATIONS.values(), ids=list(LOCATIONS))
def test_a_location_that_no_file_has_is_refused(state: RestState, uri: str, location: str | None) -> None:
    state.tables["sales", "orders"] = location
    with pytest.raises(CorruptTableError) as caught:
        lv.open_table(ORDERS)
    assert caught.value.kind == "bad-metadata-location"
    assert caught.value.message == (
        f"the catalog says that the metadata of {ORDERS} lies at {location or ''!r}, where no file can be"
    )


def test_a_location_where_nothing_lies_is_told(state: RestState, uri: str, tmp_path: Path) -> None:
    state.tables["sales", "orders"] = f"{tmp_path}/gone/metadata/v1.metadata.json"
    with pytest.raises(CorruptTableError) as caught:
        lv.open_table(ORDERS)
    assert caught.value.kind == "metadata-missing"
    assert caught.value.message == (
        f"the catalog says that the metadata of {ORDERS} lies at {tmp_path}/gone/metadata/v1.metadata.json, "
        "which is not there"
    )


def test_a_metadata_file_may_have_any_name(state: RestState, uri: str) -> None:
    here = Path(str(state.tables["sales", "orders"]))
    here.rename(here.parents[1] / "current")
    state.tables["sales", "orders"] = str(here.parents[1] / "current")
    assert ids(lv.open_table(ORDERS)) == [0, 1]


NAMES: dict[str, tuple[str, type[LakeviewError], str, str]] = {
    "no table": (
        "sales.nothing", NotATableError, "not-a-table",
        "catalog://prod/sales.nothing is not there: the catalog holds no table of this name",
    ),
    "no namespace": (
        "gone.orders", NotATableError, "unknown-namespace",
        "catalog://prod/gone is not there: the catalog holds no such namespace",
    ),
    "a view": (
        "sales.big", UnsupportedTableError, "view",
        "catalog://prod/sales.big is a view, which has no files of its own",
    ),
    "a namespace": (
        "sales", InvalidRequestError, "invalid-request", "catalog://prod/sales names a namespace, not a table",
    ),
    "a catalog": ("", InvalidRequestError, "invalid-request", "catalog://prod/ names a catalog, not a table"),
}  # fmt: skip


@pytest.mark.parametrize(("names", "error", "kind", "message"), NAMES.values(), ids=list(NAMES))
def test_a_name_of_no_table_is_told_apart(
    uri: str, names: str, error: type[LakeviewError], kind: str, message: str
) -> None:
    with pytest.raises(error) as caught:
        lv.open_table(f"catalog://prod/{names}")
    assert (caught.value.kind, caught.value.message) == (kind, message)
    assert caught.value.fix


def test_a_namespace_that_is_not_there_has_no_tables_to_find(uri: str) -> None:
    with pytest.raises(NotATableError) as caught:
        lv.find_tables("catalog://prod/gone")
    assert caught.value.kind == "unknown-namespace"
    assert caught.value.fix == "choose from what lies below catalog://prod/"


def test_a_catalog_that_nobody_configured_is_told(uri: str) -> None:
    for ask in (lambda: lv.open_table("catalog://other/a.b"), lambda: lv.find_tables("catalog://other")):
        with pytest.raises(InvalidRequestError) as caught:
            ask()
        assert caught.value.kind == "unknown-catalog"
        assert caught.value.message == "no catalog is configured by the name other"
        assert caught.value.fix == (
            "set PYICEBERG_CATALOG__OTHER__URI, or [catalogs.other] in the file of LAKEVIEW_CONFIG"
        )


def test_properties_of_a_catalog_belong_to_an_address_in_one(tmp_path: Path) -> None:
    for ask in (lv.open_table, lv.find_tables):
        with pytest.raises(InvalidRequestError, match="for an address that is in none"):
            ask(str(tmp_path), catalog={"uri": "http://127.0.0.1:9"})


def error_text(error: LakeviewError) -> str:
    """Everything of an error that somebody may see."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(error.__dict__)


def test_a_client_with_its_secret_is_let_in_and_its_token_renewed(state: RestState, uri: str) -> None:
    state.client_secret, state.token = SECRET, "t0ken-one"
    properties = {"uri": uri, "credential": f"me:{SECRET}"}
    opened_table = lv.open_table(ORDERS, catalog=properties)
    assert ids(opened_table) == [0, 1]
    state.token = "t0ken-two"  # the first has run out
    tokens = state.requests["POST token"]
    assert not opened_table.refresh()
    assert state.requests["POST token"] == tokens + 1
    state.failing = [(419, "AuthenticationTimeoutException")]
    assert not opened_table.refresh()
    assert lv.find_tables("catalog://prod", catalog=properties).height == 1


WRONG: dict[str, dict[str, str]] = {
    "a secret": {"credential": f"me:{SECRET}"},
    "a token": {"token": f"{SECRET}-as-a-token"},
    "nothing": {},
}


@pytest.mark.parametrize("properties", WRONG.values(), ids=list(WRONG))
def test_wrong_credentials_are_refused_and_never_shown(state: RestState, uri: str, properties: dict[str, str]) -> None:
    state.client_secret, state.token = "another", "t0ken"
    with pytest.raises(AccessDeniedError) as caught:
        lv.open_table(ORDERS, catalog={"uri": uri, **properties})
    assert caught.value.message.startswith("the catalog prod refuses access: ")
    assert caught.value.fix == "check the catalog's credentials in the configuration"
    assert SECRET not in error_text(caught.value), "although this server says the credentials back"


def test_a_forbidden_table_is_refused(state: RestState, uri: str) -> None:
    state.failing = [(403, "ForbiddenException")]
    with pytest.raises(AccessDeniedError, match="ForbiddenException: as planned"):
        lv.open_table(ORDERS)


def test_a_catalog_that_is_busy_is_asked_again_and_one_that_stays_so_is_unavailable(state: RestState, uri: str) -> None:
    state.failing = [(503, "SlowDownException"), (429, "TooManyRequests")]
    assert ids(lv.open_table(ORDERS)) == [0, 1]
    state.failing = [(503, "SlowDownException")] * 9
    with pytest.raises(StoreUnavailableError) as caught:
        lv.open_table(ORDERS)
    assert caught.value.kind == "catalog-unavailable"
    assert caught.value.message == "the catalog prod did not answer: SlowDownException: as planned"
    assert len(state.failing) == 6, "asked three times"


def test_a_catalog_that_is_down_is_unavailable() -> None:
    for ask in (lv.open_table, lv.find_tables):
        with pytest.raises(StoreUnavailableError) as caught:
            ask(ORDERS, catalog={"uri": "http://127.0.0.1:9", "token": SECRET})
        assert caught.value.message == "the catalog prod did not answer: ConnectionError"
        assert caught.value.fix == "try again; check that it runs, and its uri"
        assert SECRET not in error_text(caught.value)


GARBAGE: dict[str, bytes] = {
    "a page for people": b"<html>hello</html>",
    "nothing": b"",
    "a list": b"[]",
    "a cut answer": b'{"metadata-location": "/x',
    "a location that is a number": b'{"metadata-location": 5, "defaults": {}, "overrides": {"prefix": "ws/one"}}',
}


@pytest.mark.parametrize("raw", GARBAGE.values(), ids=list(GARBAGE))
def test_what_no_catalog_answers_is_told(state: RestState, uri: str, raw: bytes) -> None:
    state.raw = raw
    for ask in (lambda: lv.open_table(ORDERS), lambda: lv.find_tables("catalog://prod/sales")):
        with pytest.raises(InvalidRequestError, match="the catalog prod could not be asked: ") as caught:
            ask()
        assert caught.value.kind == "bad-catalog"


BAD_PROPERTIES: dict[str, dict[str, Any]] = {
    "a type nobody knows": {"type": "nosuch", "token": SECRET},
    "no uri": {"type": "rest", "token": SECRET},
    "a uri of no catalog": {"uri": f"gopher://{SECRET}@x"},
    "a uri that is none": {"type": "rest", "uri": f"ht!tp://{SECRET}"},
}


@pytest.mark.parametrize("properties", BAD_PROPERTIES.values(), ids=list(BAD_PROPERTIES))
def test_properties_that_configure_no_catalog_are_told_without_showing_them(properties: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="the catalog prod could not be asked: ") as caught:
        lv.open_table(ORDERS, catalog=properties)
    assert SECRET not in error_text(caught.value)


def test_credentials_are_in_no_repr(state: RestState, uri: str) -> None:
    state.config = {"s3.secret-access-key": SECRET}
    opened_table = lv.open_table(ORDERS, catalog={"uri": uri, "token": SECRET})
    texts = [
        repr(opened_table),
        repr(opened_table.snapshot()),
        repr(vars(opened_table)),
        repr(Config(catalogs={"p": {"token": SECRET}})),
    ]
    pointer: Any = vars(opened_table)["pointer"]
    texts += [repr(v) for v in vars(pointer).values() if not isinstance(v, dict)]
    assert all(SECRET not in text for text in texts)


ADDRESSES: dict[str, Callable[[], object]] = {
    "no catalog": lambda: lv.open_table("catalog:///a.b"),
    "an empty level": lambda: lv.open_table("catalog://prod/a..b"),
    "a path": lambda: lv.open_table("catalog://prod/a/b"),
    "a question": lambda: lv.open_table("catalog://prod/a.b?x=1"),
}


@pytest.mark.parametrize("ask", ADDRESSES.values(), ids=list(ADDRESSES))
def test_an_address_that_names_nothing_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        ask()
    assert caught.value.fix == "write catalog://<catalog>/<namespace>.<table>, with %2E for a dot inside a name"


SPELLINGS = ["CATALOG://prod/sales.orders", "catalog:/prod/sales.orders/", "catalog://prod/s%61les.orders"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_address_has_one_spelling(uri: str, spelling: str) -> None:
    assert lv.open_table(spelling).address == ORDERS
