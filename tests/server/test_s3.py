"""Tables on an object store: shared by URLs that the store itself signs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from lakeview.model.errors import StoreUnavailableError
from lakeview.sharing.server.delta_source import DeltaSource
from tests.builders.s3 import Bucket, new_bucket, s3_server
from tests.server.conftest import Api, hub_of
from tests.server.shared_lake import configuration, months
from tests.server.test_queries import DELTA


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    """A bucket on this machine."""
    with s3_server() as endpoint:
        yield new_bucket(endpoint)


@pytest.fixture
def far(api: Api, bucket: Bucket, tmp_path: Path) -> Api:
    """A server that shares `far`, a table in that bucket."""
    months(tmp_path / "table")
    table = {"name": "far", "location": bucket.copy(tmp_path / "table", "far"), "storageOptions": bucket.options}
    document: dict[str, Any] = configuration(api.folder)
    document["shares"] = [{"name": "lake", "schemas": [{"name": "default", "tables": [table]}]}]
    document["recipients"] = [{"name": "ann", "shares": ["lake"]}]
    hub = hub_of(api.folder, document, api.clock)
    api.hub.catalogue = hub.catalogue
    api.hub.sources.configure(hub.settings)
    return api


def test_clients_read_from_the_store_by_its_own_urls(far: Api, bucket: Bucket) -> None:
    files = far.files("far")
    assert len(files) == 6
    for file in files:
        assert file["url"].startswith(bucket.endpoint)
        assert "X-Amz-Signature=" in file["url"]  # the mark that kernel clients look for
        assert bucket.options["secret"] not in file["url"]
        assert httpx.get(file["url"], headers={"Range": "bytes=0-3"}).content == b"PAR1"


def test_urls_stay_alike_within_a_window(far: Api) -> None:
    assert far.files("far") == far.files("far")


def test_filters_need_no_data(far: Api) -> None:
    assert len(far.files("far", predicateHints=["id = 7"])) == 1
    (line,) = far.query("far", DELTA, predicateHints=["month = 3"])[2:]
    assert "X-Amz-Signature=" in line["file"]["deltaSingleAction"]["add"]["path"]


def test_our_own_urls_serve_what_a_store_holds(far: Api) -> None:
    far.hub.catalogue.settings = msgspec.structs.replace(far.hub.settings, sign_in_store=False)
    url = far.files("far")[0]["url"]
    assert "/files/" in url
    assert far.client.get(url).content[:4] == b"PAR1"
    assert far.client.get(url, headers={"Range": "bytes=-4"}).content == b"PAR1"


def test_a_store_that_does_not_answer_may_be_asked_again(far: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def dark(_: DeltaSource) -> int:
        raise StoreUnavailableError("s3://secret/place could not be read")

    monkeypatch.setattr(DeltaSource, "refresh", dark)
    status, code, message = far.refused("far")
    assert (status, code) == (503, "RESOURCE_EXHAUSTED")
    assert message == "the table's store does not answer, try again (store-unavailable)"
