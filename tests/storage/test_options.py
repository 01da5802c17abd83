"""Storage options: their spellings, sections of the configuration file, and one source of credentials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakeview as lv
from lakeview.model.config import Config, settings
from lakeview.model.errors import InvalidRequestError, StoreUnavailableError
from lakeview.storage.configured import configured_options
from lakeview.storage.credentials import static_aws_credentials
from lakeview.storage.object_clients import split_address
from lakeview.storage.options import combine_options, normal_options
from tests.builders.object_server import object_server

AWS = {"access_key_id": "a", "secret_access_key": "s3cr3t"}

SPELLINGS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "deltalake": ("s3", {
        "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s3cr3t", "AWS_ENDPOINT_URL": "http://h:9",
        "AWS_REGION": "r", "AWS_ALLOW_HTTP": "true", "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
        "AWS_S3_LOCKING_PROVIDER": "dynamodb", "AWS_SESSION_TOKEN": "t",
    }, AWS | {
        "endpoint": "http://h:9", "region": "r", "allow_http": True, "locking_provider": "dynamodb",
        "session_token": "t",
    }),
    "deltalake, small": ("s3", {"aws_access_key_id": "a", "aws_secret_access_key": "s3cr3t", "timeout": "9s"}, AWS | {
        "timeout": "9s",
    }),
    "s3fs": ("s3", {
        "key": "a", "secret": "s3cr3t", "token": "t", "anon": False, "default_block_size": 9, "use_ssl": True,
        "client_kwargs": {"endpoint_url": "http://h:9", "region_name": "r", "verify": False},
        "config_kwargs": {"s3": {"addressing_style": "virtual"}, "signature_version": "s3v4", "read_timeout": 3},
        "s3_additional_kwargs": {"ServerSideEncryption": "AES256"}, "requester_pays": True,
    }, AWS | {
        "session_token": "t", "skip_signature": False, "endpoint": "http://h:9", "region": "r", "read_timeout": "3.0s",
        "allow_invalid_certificates": True, "virtual_hosted_style_request": True, "server_side_encryption": "AES256",
        "request_payer": True,
    }),
    "gcsfs": ("google", {"token": "/f.json", "project": "p"}, {"application_credentials": "/f.json"}),
    "gcsfs, anonymous": ("google", {"token": "anon"}, {"skip_signature": True}),
    "gcsfs, a mapping": ("google", {"token": {"a": "b"}}, {"service_account_key": '{"a": "b"}'}),
    "deltalake on Google": ("google", {"GOOGLE_SERVICE_ACCOUNT": "/f"}, {"service_account": "/f"}),
    "adlfs": ("azure", {"account_name": "n", "sas_token": "?s", "anon": None}, {"account_name": "n", "sas_key": "?s"}),
    "adlfs, a connection string": ("azure", {
        "connection_string": "AccountName=n;AccountKey=c2VjcmV0==;BlobEndpoint=http://h:9/n/",
    }, {"account_name": "n", "account_key": "c2VjcmV0==", "endpoint": "http://h:9/n"}),
    "deltalake on Azure": ("azure", {
        "AZURE_STORAGE_ACCOUNT_NAME": "n", "azure_storage_account_key": "k", "AZURE_CLIENT_ID": "c",
    }, {"account_name": "n", "account_key": "k", "client_id": "c"}),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "expected"), SPELLINGS.values(), ids=SPELLINGS)
def test_options_have_one_spelling(kind: str, options: dict[str, Any], expected: dict[str, Any]) -> None:
    assert normal_options(kind, options) == expected
    assert normal_options(kind, expected) == expected


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("s3", {"AWS_ACCESS_KEY": "s3cr3t"}, "AWS_ACCESS_KEY is no storage option of S3"),
        ("s3", {"client_kwargs": {"colour": "s3cr3t"}}, "colour is no storage option of S3"),
        ("s3", {"client_kwargs": "s3cr3t"}, "client_kwargs is no mapping"),
        ("azure", {"key": "s3cr3t"}, "key is no storage option of Azure"),
        ("azure", {"credential": object()}, "credential is an object of Azure's own library"),
        ("google", {"token": 1}, "token is no way to Google's credentials"),
    ],
)
def test_an_unknown_option_is_refused_by_name(kind: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words) as caught:
        normal_options(kind, options)
    assert caught.value.fix is not None
    assert "s3cr3t" not in str(caught.value)


def test_credentials_come_from_one_source() -> None:
    vended = {"key": "theirs", "secret": "x", "token": "session", "client_kwargs": {"region_name": "r"}}
    own = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s3cr3t"}
    assert combine_options("s3", vended, own) == AWS | {"region": "r"}
    assert combine_options("s3", vended, {"AWS_REGION": "mine"}) == {
        "access_key_id": "theirs", "secret_access_key": "x", "session_token": "session", "region": "mine",
    }  # fmt: skip
    assert combine_options("s3", vended, {"anon": True}) == {"skip_signature": True, "region": "r"}
    assert combine_options("s3", own, {"anon": False})["access_key_id"] == "a"
    assert combine_options(None, {"host": "a", "user": "b"}, {"user": "c"}) == {"host": "a", "user": "c"}


def test_a_key_is_not_completed_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of another")
    assert static_aws_credentials(AWS)()["token"] is None
    with pytest.raises(InvalidRequestError, match="hold access_key_id without secret_access_key"):
        static_aws_credentials({"access_key_id": "a"})


PLACES = {
    "s3://bucket/a/b": ("bucket", "", "a/b"),
    "s3a://bucket": ("bucket", "", ""),
    "az://container/t": ("container", "", "t"),
    "abfss://container@account.dfs.core.windows.net/t": ("container", "account.dfs.core.windows.net", "t"),
}


@pytest.mark.parametrize(("address", "expected"), PLACES.items())
def test_an_address_leads_to_a_bucket_and_a_key(address: str, expected: tuple[str, str, str]) -> None:
    place, key = split_address(address)
    assert (place.bucket, place.host, key) == expected


# -- the configuration file

FILE = """
[storage."s3://lake"]
AWS_ENDPOINT_URL = "{endpoint}"
AWS_ACCESS_KEY_ID = "an-id"
AWS_SECRET_ACCESS_KEY = {{ env = "LAKE_SECRET" }}

[storage."s3://lake/private"]
AWS_ENDPOINT_URL = "http://127.0.0.1:9"
AWS_ACCESS_KEY_ID = "another"
AWS_SECRET_ACCESS_KEY = {{ env = "LAKE_SECRET" }}
"""


def test_a_section_of_the_file_opens_its_stores_for_every_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with object_server() as server:
        server.buckets["lake"] = {}
        (tmp_path / "lakeview.toml").write_text(FILE.format(endpoint=server.endpoint))
        monkeypatch.setenv("LAKEVIEW_CONFIG", str(tmp_path / "lakeview.toml"))
        with pytest.raises(
            InvalidRequestError, match=r'\[storage."s3://lake"\] takes AWS_SECRET_ACCESS_KEY from LAKE_'
        ):
            lv.find_tables("s3://lake")
        monkeypatch.setenv("LAKE_SECRET", "s3cr3t")
        assert lv.find_tables("s3://lake").height == 0
        with pytest.raises(StoreUnavailableError, match=r"at http://127\.0\.0\.1:9 does not answer"):
            lv.find_tables("s3://lake/private/deep")
        assert "s3cr3t" not in repr(settings())


SECTION = {"access_key_id": "a", "secret_access_key": {"env": "LAKE_SECRET"}, "region": "r"}


def test_options_of_a_call_win_over_a_section_and_take_its_credentials_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_SECRET", "s3cr3t")
    config = Config(storage={"s3://lake": SECTION})
    assert configured_options("s3://lake/t", {}, config) == AWS | {"region": "r"}
    web = Config(storage={"https://host": {"headers": {"Authorization": {"env": "LAKE_SECRET"}}}})
    assert configured_options("https://host/t", {}, web) == {"headers": {"Authorization": "s3cr3t"}}
    assert configured_options("s3://other/t", {"key": "b"}, config) == {"key": "b"}
    own = {"profile": "mine"}
    assert configured_options("s3://lake/t", own, config) == own | {"region": "r"}


LITERALS: dict[str, tuple[str, dict[str, Any]]] = {
    "deltalake's name": ("s3://lake", {"AWS_SECRET_ACCESS_KEY": "s3cr3t"}),
    "fsspec's name": ("s3://lake", {"secret": "s3cr3t"}),
    "inside another": ("s3://lake", {"client_kwargs": {"aws_secret_access_key": "s3cr3t"}}),
    "a connection string": ("az://lake", {"connection_string": "AccountName=n;AccountKey=s3cr3t"}),
    "headers": ("https://host", {"headers": {"Authorization": "s3cr3t"}}),
    "a password": ("sftp://host", {"password": "s3cr3t"}),
}


@pytest.mark.parametrize(("address", "section"), LITERALS.values(), ids=LITERALS)
def test_a_secret_in_the_file_is_refused(address: str, section: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="the configuration holds the value of") as caught:
        configured_options(f"{address}/t", {}, Config(storage={address: section}))
    assert "s3cr3t" not in str(caught.value)
