"""Settings and a token to the profile file that a recipient is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lakeview.model.clock import Clock
from lakeview.model.errors import InvalidRequestError
from lakeview.sharing.server.settings import Settings
from lakeview.sharing.server.tokens import Token, TokenFile


def endpoint_of(settings: Settings) -> str:
    """Where clients reach the API."""
    if settings.public_url is not None:
        return settings.public_url.rstrip("/") + settings.endpoint
    scheme = "https" if settings.ssl is not None else "http"
    return f"{scheme}://{settings.host}:{settings.port}{settings.endpoint}"


def profile_of(settings: Settings, token: str, expires: datetime | None) -> dict[str, Any]:
    """A profile file: version 1, which every client reads."""
    profile: dict[str, Any] = {
        "shareCredentialsVersion": 1,
        "endpoint": endpoint_of(settings) + "/",
        "bearerToken": token,
    }
    if expires is not None:
        profile["expirationTime"] = expires.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return profile


def token_file(configuration: Path, settings: Settings, clock: Clock) -> TokenFile:
    """The tokens of a configuration. InvalidRequestError if it names no file for them."""
    if settings.tokens is None:
        raise InvalidRequestError(
            f"{configuration.name} names no file of tokens", fix="add tokens: tokens.json", kind="bad-configuration"
        )
    return TokenFile(Path(settings.tokens), clock)


def new_profile(
    configuration: Path,
    settings: Settings,
    recipient: str,
    clock: Clock,
    make_token: Callable[[TokenFile], tuple[str, Token]],
) -> tuple[bytes, Token]:
    """The profile file of a recipient with a new token, and what is stored of the token.

    InvalidRequestError if the configuration names no such recipient or no file of tokens; errors of `make_token`.
    """
    book = token_file(configuration, settings, clock)
    if recipient not in {r.name for r in settings.recipients}:
        raise InvalidRequestError(
            f"{configuration.name} names no recipient {recipient}", fix="add the recipient and its shares first"
        )
    text, token = make_token(book)
    return json.dumps(profile_of(settings, text, token.expires), indent=2).encode() + b"\n", token
