"""Query strings, bodies and headers to checked requests; what cannot be meant is refused in the protocol's words."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from lakeview.model.printable import printable
from lakeview.sharing.protocol.messages import (
    CAPABILITIES_HEADER,
    FILE_ID_HASH_HEADER,
    Capabilities,
    QueryRequest,
    ResponseFormat,
    parse_capabilities,
)
from lakeview.sharing.server import limits
from lakeview.sharing.server.refusals import bad_parameter, malformed_request, unsupported_form

BODY_BYTES = 2 << 20
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SPELLINGS = tuple((f.encode_name, (f.name, f.encode_name)) for f in msgspec.structs.fields(QueryRequest))
"""Each field of a query, and its keys in the order of their weight: snake_case, then camelCase."""

_FORMATS = tuple(ResponseFormat)


@dataclass(frozen=True, slots=True)
class ChangesRequest:
    """Which commits: versions or moments, both ends included. `feed`: the change data feed is requested, else
    adds and removes."""

    starting_version: int | None
    ending_version: int | None
    starting: datetime | None
    ending: datetime | None
    historical_metadata: bool
    historical_protocol: bool
    max_files: int | None
    page_token: str | None
    feed: bool = True


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """How an answer is to be written: what the client's headers say."""

    capabilities: Capabilities
    id_hash: str | None

    @property
    def end_stream(self) -> bool:
        """True if the client asks for an endStreamAction."""
        return bool(self.capabilities.end_stream)

    def response_format(self, features: frozenset[str]) -> ResponseFormat:
        """The format for a table that needs these reader features (in lower case).

        400 if the client takes none that we have, or lacks what the table needs.
        """
        formats = self.capabilities.formats
        choices = [ResponseFormat(f) for f in formats if f in _FORMATS]
        if formats and not choices:
            raise bad_parameter(f"responseformat {', '.join(formats)[:100]} is not supported; use parquet or delta")
        if not features:
            return choices[0] if len(choices) == 1 else ResponseFormat.PARQUET
        names = ", ".join(sorted(features))
        if ResponseFormat.DELTA not in choices:
            raise unsupported_form(
                f"Unsupported Delta Table Properties: the table uses {names}, which needs responseformat=delta"
            )
        if missing := sorted(features - self.capabilities.reader_features):
            raise unsupported_form(
                f"Unsupported Delta Table Properties: the table uses {names}, and the client does not read "
                f"{', '.join(missing)}"
            )
        return ResponseFormat.DELTA


def answer_options(headers: Mapping[str, str]) -> AnswerOptions:
    """What the headers ask for. 400 for an unknown scheme of file ids."""
    id_hash = headers.get(FILE_ID_HASH_HEADER)
    if id_hash is not None:
        if id_hash.lower() not in _FORMATS:
            raise bad_parameter(f"Unsupported fileidhash: '{id_hash[:100]}'")
        id_hash = id_hash.lower()
    return AnswerOptions(parse_capabilities(headers.get(CAPABILITIES_HEADER)), id_hash)


# -- query strings


def page_of(query: Mapping[str, str]) -> tuple[int, str | None]:
    """maxResults and pageToken of a listing. 400 for a number outside 0 to 500."""
    text = query.get("maxResults")
    most = limits.RESULTS if text is None else number(text, "maxResults")
    if most is None or not 0 <= most <= limits.RESULTS:
        raise bad_parameter(f"Acceptable values of 'maxResults' are 0 to {limits.RESULTS}, inclusive.")
    return most, query.get("pageToken") or None


def number(text: str | None, name: str) -> int | None:
    """A whole number of 64 bits; None without one."""
    if text is None or text == "":
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > limits.DIGITS or int(digits) >= 2**63:
        raise bad_parameter(f"Not a numeric value: {name}")
    return int(text)


def flag(text: str | None, name: str) -> bool:
    """true or false in any case; false without one."""
    if text is not None and text.lower() not in ("true", "false"):
        raise bad_parameter(f"{name} is neither true nor false")
    return text is not None and text.lower() == "true"


def moment(text: str | None, name: str) -> datetime | None:
    """An ISO 8601 moment; one without a zone is in UTC. None without one."""
    if text is None or text == "":
        return None
    try:
        timestamp = datetime.fromisoformat(text.replace(" ", "+")) if "T" in text else datetime.fromisoformat(text)
        return timestamp.replace(tzinfo=UTC) if timestamp.tzinfo is None else timestamp.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise bad_parameter(
            f"Invalid {name}: {printable(text[:100])!r} is not in ISO 8601, such as 2022-01-01T00:00:00Z"
        ) from error


def version_number(text: str | None, name: str) -> int | None:
    """A version of a query string: a number from 0 on."""
    return _at_least(0, number(text, name), name)


def changes_request(query: Mapping[str, str]) -> ChangesRequest:
    """The parameters of a changes call. 400 unless exactly one start is given, and at most one end."""
    request = ChangesRequest(
        version_number(query.get("startingVersion"), "startingVersion"),
        version_number(query.get("endingVersion"), "endingVersion"),
        moment(query.get("startingTimestamp"), "startingTimestamp"),
        moment(query.get("endingTimestamp"), "endingTimestamp"),
        flag(query.get("includeHistoricalMetadata"), "includeHistoricalMetadata"),
        flag(query.get("includeHistoricalProtocol"), "includeHistoricalProtocol"),
        _at_least(1, number(query.get("maxFiles"), "maxFiles"), "maxFiles"),
        query.get("pageToken") or None,
    )
    if (request.starting_version is None) == (request.starting is None):
        raise bad_parameter("exactly one of startingVersion and startingTimestamp has to be given")
    if request.ending_version is not None and request.ending is not None:
        raise bad_parameter("at most one of endingVersion and endingTimestamp can be given")
    return request


# -- bodies


def query_request(body: bytes) -> QueryRequest:
    """The body of a query. 400 MALFORMED_REQUEST for no JSON object or wrong types, INVALID_PARAMETER_VALUE for values
    that cannot be meant. Numbers as text and snake_case keys are taken: clients of today send them."""
    try:
        document = _FIELDS.decode(body)
    except msgspec.ValidationError as error:
        raise malformed_request("the body is no JSON object") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise malformed_request("the body is no JSON") from error
    # only what is known is looked at: a body may hold hundreds of thousands of other keys
    texts = {name: document[key] for name, keys in _SPELLINGS for key in keys if key in document}
    try:
        values = {name: msgspec.json.decode(value) for name, value in texts.items()}
        request = msgspec.convert(values, QueryRequest, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        text = str(error)
        place = text.rpartition("`$.")[2].rstrip("`") if "`$." in text else "the body"
        raise malformed_request(f"wrong type or Not a numeric value: {place[:100]}") from error
    _check(request)
    return request


def _check(request: QueryRequest) -> None:
    points = [n for n in ("version", "timestamp", "starting_version") if getattr(request, n) is not None]
    if len(points) > 1:
        raise bad_parameter("Please only provide one of: version, timestamp, startingVersion")
    for value, name in (
        (request.version, "version"),
        (request.starting_version, "startingVersion"),
        (request.ending_version, "endingVersion"),
        (request.limit_hint, "limitHint"),
    ):
        _at_least(0, value, name)
    _at_least(1, request.max_files, "maxFiles")
    refresh = request.include_refresh_token or request.refresh_token
    if refresh and (points or request.page_token):
        raise bad_parameter("a refresh token goes with the first page of the latest version only")


def _at_least(least: int, value: int | None, name: str) -> int | None:
    if value is not None and value < least:
        raise bad_parameter(f"{name} must {'be positive' if least else 'not be negative'}")
    return value
