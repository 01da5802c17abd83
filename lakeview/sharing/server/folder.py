"""A folder's settings to a server that shares every table below it, with one token that lives as long as the server."""

from __future__ import annotations

import secrets
from typing import Any

from lakeview.model.clock import Clock
from lakeview.sharing.server.hub import Hub
from lakeview.sharing.server.profiles import profile_of
from lakeview.sharing.server.settings import Settings
from lakeview.sharing.server.tokens import PREFIX, Token, digest


def open_folder(settings: Settings, clock: Clock) -> tuple[Hub, dict[str, Any]]:
    """The state of the server, and the profile that opens it: the only place where the token is."""
    text = PREFIX + secrets.token_urlsafe(32)
    token = Token("start", settings.recipients[0].name, digest(text), clock())
    return Hub(settings, tokens=(token,)), profile_of(settings, text, None)
