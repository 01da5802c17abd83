"""What the operator of a server decides, as values: shares, recipients, limits.

The spelling is the reference server's (`version: 1`, camelCase), with recipients, views and an audit log beside it.
"""

from typing import Any

import msgspec


class ViewEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A view on a table: some columns, and the rows for which a condition is true."""

    columns: list[str] | None = None
    where: str | None = None


class TableEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One shared table: where it lies, and how much of its past is shared.

    `id`: unique and immutable; `history_shared`: versions, moments and changes may be asked for, from `start_version`
    on; `view`: what is shared is not the table but a view on it.
    """

    name: str
    location: str
    id: str | None = None
    history_shared: bool = False
    start_version: int = 0
    storage_options: dict[str, Any] = msgspec.field(default_factory=dict)
    view: ViewEntry | None = None


class SchemaEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A group of tables."""

    name: str
    tables: list[TableEntry] = msgspec.field(default_factory=list)


class ShareEntry(msgspec.Struct, frozen=True, rename="camel"):
    """What is granted together."""

    name: str
    id: str | None = None
    schemas: list[SchemaEntry] = msgspec.field(default_factory=list)


class Recipient(msgspec.Struct, frozen=True, rename="camel"):
    """Who may read which shares (`*`: all). `id` stands in signed URLs instead of the name.

    One that is blocked is refused with 403, with a valid token too.
    """

    name: str
    shares: list[str] = msgspec.field(default_factory=list)
    id: str | None = None
    blocked: bool = False


class Authorization(msgspec.Struct, frozen=True, rename="camel"):
    """The reference server's one token, which opens every share."""

    bearer_token: str | None = None


class Tls(msgspec.Struct, frozen=True, rename="camel"):
    """Certificate and key for TLS, PEM files."""

    certificate_file: str
    certificate_key_file: str
    certificate_password_file: str | None = None


class Limits(msgspec.Struct, frozen=True, rename="camel"):
    """How much one recipient may ask for. API and files are limited apart: one load asks for many files.

    Rates are requests a second, with a burst; above them 429. `concurrent_files`: downloads of one recipient at a time,
    more have to wait. `changes_versions`: the longest range of a changes call. `stall_seconds`: a client that takes
    nothing for so long, or does not send its request, is cut off.
    """

    api_rate: float = 50.0
    api_burst: int = 200
    failures_rate: float = 5.0
    failures_burst: int = 50
    concurrent_files: int = 64
    files_rate: float = 2_000.0
    files_burst: int = 10_000
    changes_versions: int = 100_000
    stall_seconds: float = 60.0


class Settings(msgspec.Struct, frozen=True, rename="camel"):
    """The whole configuration. Times as their names say; addresses as lakeview takes them.

    `public_url`: where clients reach the server, for signed URLs (never the Host header); `tokens`: the file of hashed
    tokens, `keys`: of the signing keys, `audit`: a table's address, `views`: a folder for materialised views.
    `load_ahead`: so many tables are listed when the server starts, before anybody asks for them.
    `allow_http`: plain http on an interface other than loopback; `private_networks` is the client's affair, not ours.
    """

    version: int = 1
    shares: list[ShareEntry] = msgspec.field(default_factory=list)
    recipients: list[Recipient] = msgspec.field(default_factory=list)
    authorization: Authorization = Authorization()
    host: str = "127.0.0.1"
    port: int = 8080
    endpoint: str = "/delta-sharing"
    public_url: str | None = None
    trusted_proxies: list[str] = msgspec.field(default_factory=list)
    allow_http: bool = False
    ssl: Tls | None = None
    tokens: str | None = None
    keys: str | None = None
    audit: str | None = None
    audit_seconds: float = 60.0
    views: str | None = None
    pre_signed_url_timeout_seconds: int = 3600
    sign_in_store: bool = True
    evaluate_predicate_hints: bool = True
    evaluate_json_predicate_hints: bool = True
    query_table_page_size_limit: int = 10_000
    query_table_page_token_ttl_ms: int = 259_200_000
    refresh_token_ttl_ms: int = 3_600_000
    tell_sizes: bool = False
    cache_bytes: int = 512 << 20
    load_ahead: int = 0
    limits: Limits = Limits()
