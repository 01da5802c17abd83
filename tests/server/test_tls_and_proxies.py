"""TLS by the server itself, and a proxy before it: who asks, under which address, and whose word counts."""

from __future__ import annotations

import ipaddress
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import lakeview as lv
from tests.server.conftest import RunningServer, listening
from tests.server.shared_lake import TABLE, configuration

PASSWORD = b"for the tests"


@dataclass(frozen=True)
class Certificates:
    """An authority, and a server's certificate and key (with a password) for 127.0.0.1, as PEM files."""

    authority: Path
    leaf: Path
    key: Path
    password: Path


def signed(name: str, key: Any, issuer: Any, by: Any, *extensions: x509.ExtensionType) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2100, 1, 1, tzinfo=UTC))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(by, hashes.SHA256())


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    root, leaf = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(root.public_key())
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    authority = signed(
        "tests", root, "tests", root, x509.BasicConstraints(ca=True, path_length=None), identifier, usage
    )
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(root.public_key())
    server = signed("server", leaf, "tests", root, x509.BasicConstraints(ca=False, path_length=None), names, issued_by)
    certificate_files = Certificates(folder / "ca.pem", folder / "leaf.pem", folder / "key.pem", folder / "password")
    certificate_files.authority.write_bytes(pem(authority))
    certificate_files.leaf.write_bytes(pem(server))
    certificate_files.key.write_bytes(
        leaf.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(PASSWORD),
        )
    )  # fmt: skip
    certificate_files.password.write_bytes(PASSWORD + b"\n")
    return certificate_files


@pytest.fixture(scope="module")
def secure(certificates: Certificates, lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    tls = {
        "certificateFile": str(certificates.leaf),
        "certificateKeyFile": str(certificates.key),
        "certificatePasswordFile": str(certificates.password),
    }
    with listening(tmp_path_factory.mktemp("tls"), lake, configuration(lake, ssl=tls)) as server:
        yield server


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def secure_url(running: RunningServer) -> str:
    return running.url.replace("http://", "https://")


def test_over_tls_tables_are_listed_and_read_and_urls_are_https(
    secure: RunningServer, certificates: Certificates
) -> None:
    context = ssl.create_default_context(cafile=certificates.authority)
    with httpx.Client(verify=context, headers={"Authorization": f"Bearer {secure.token}"}) as client:
        base = secure_url(secure) + "/delta-sharing/"
        assert client.get(base + "shares").json()["items"][0]["name"] == "lake"
        lines_found = lines(client.post(base + TABLE.format("months") + "/query", json={}))
    urls = [line["file"]["url"] for line in lines_found[2:]]
    assert all(url.startswith(secure_url(secure) + "/files/") for url in urls)
    with httpx.Client(verify=context) as anyone:
        answer = anyone.get(urls[0], headers={"Range": "bytes=0-3"})
    assert (answer.status_code, answer.content) == (206, b"PAR1")


def test_our_own_client_reads_over_tls(
    secure: RunningServer, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = f"{secure_url(secure)}/delta-sharing/"
    profile = tmp_path / "tls.share"
    profile.write_text(json.dumps({"shareCredentialsVersion": 1, "endpoint": endpoint, "bearerToken": secure.token}))
    profile.chmod(0o600)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    rows = lv.open_table(f"{profile}#lake.default.months").scan().collect()
    assert sorted(rows["id"]) == list(range(12))


def test_a_certificate_of_nobody_known_is_not_taken_and_plain_http_gets_nothing(secure: RunningServer) -> None:
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        httpx.get(secure_url(secure) + "/delta-sharing/shares")
    with pytest.raises(httpx.TransportError):
        httpx.get(secure.url + "/delta-sharing/shares")


FORWARDED = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"}


@pytest.mark.parametrize(
    ("trusted", "client"), [(["127.0.0.1"], "203.0.113.7"), (["10.0.0.5"], "127.0.0.1"), ([], "127.0.0.1")]
)
def test_only_a_proxy_that_is_trusted_says_who_asks_and_none_says_where_we_are(
    trusted: list[str], client: str, lake: Path, tmp_path: Path
) -> None:
    public = "https://share.example.com/lake"
    document = configuration(lake, trustedProxies=trusted, audit="audit", publicUrl=public)
    with listening(tmp_path, lake, document) as running:
        headers = {"Authorization": f"Bearer {running.token}", **FORWARDED}
        answer = httpx.post(f"{running.endpoint}/{TABLE.format('months')}/query", json={}, headers=headers)
        urls = [line["file"]["url"] for line in lines(answer)[2:]]
        assert all(url.startswith(public + "/files/") for url in urls)
        # what the proxy passes on is what it was asked for, below its own path
        assert httpx.get(urls[0].replace(public, running.url)).content[:4] == b"PAR1"
    rows = lv.open_table(tmp_path / "audit").scan().collect()
    assert rows.filter(pl.col("action") == "query")["client"].to_list() == [client]


def test_without_a_public_address_forwarded_headers_steer_no_url(lake: Path, tmp_path: Path) -> None:
    with listening(tmp_path, lake, configuration(lake, trustedProxies=["127.0.0.1"])) as running:
        headers = {"Authorization": f"Bearer {running.token}", **FORWARDED}
        answer = httpx.post(f"{running.endpoint}/{TABLE.format('months')}/query", json={}, headers=headers)
        assert all(line["file"]["url"].startswith(running.url + "/files/") for line in lines(answer)[2:])


@pytest.mark.parametrize(("trusted", "status"), [(["127.0.0.1"], 401), ([], 429)])
def test_guesses_are_counted_by_who_makes_them(trusted: list[str], status: int, lake: Path, tmp_path: Path) -> None:
    """Who could name another address with each guess would never be slowed down."""
    with listening(tmp_path, lake, configuration(lake, trustedProxies=trusted)) as running:
        burst = running.hub.settings.limits.failures_burst
        with httpx.Client() as client:
            statuses = [
                client.get(f"{running.endpoint}/shares", headers={"X-Forwarded-For": f"203.0.113.{i}"}).status_code
                for i in range(burst + 20)
            ]
    assert statuses[0] == 401
    assert statuses[-1] == status
