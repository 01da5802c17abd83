"""What a profile holds to the header that a request carries; nothing here shows, pickles or logs a secret."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NoReturn

from lakeview.model.errors import InvalidRequestError

_EARLY = timedelta(seconds=60)
"""A token is renewed this long before it ends: a request under way is not cut off."""


class Secret:
    """A text that is shown as ***, and does not travel."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one place that sends it."""
        return self._text

    def hidden_in(self, text: str) -> str:
        """A text without this one: servers may echo what they were sent."""
        return text.replace(self._text, "***") if self._text else text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return 0  # not even its hash is worth knowing

    def __reduce__(self) -> NoReturn:
        raise InvalidRequestError(
            "a credential does not travel to another process",
            fix="open the share again there, from its profile",
            kind="secret",
        )


class Credentials:
    """How requests say who asks: by an Authorization header that stays the same. `secrets`: what of it is never
    shown."""

    def __init__(self, header: Secret, *secrets: Secret) -> None:
        self._header = header
        self.secrets: tuple[Secret, ...] = secrets

    def header(self, now: datetime) -> str:  # noqa: ARG002 (it does not change)
        """The Authorization header's value at an aware moment; may ask a token endpoint. SharingError if it refuses."""
        return self._header.reveal()

    def renew(self) -> bool:
        """Drop a token that can be requested again, after a 401; False if there is none."""
        return False


def bearer_token(token: Secret) -> Credentials:
    """A token that was handed out once."""
    return Credentials(Secret(f"Bearer {token.reveal()}"), token)


def basic_login(username: str, password: Secret) -> Credentials:
    """A name and a password."""
    login = base64.b64encode(f"{username}:{password.reveal()}".encode()).decode()
    return Credentials(Secret(f"Basic {login}"), Secret(login), password)


class ClientCredentials(Credentials):
    """OAuth client credentials: a token is requested, cached until shortly before it ends, and requested again.

    `ask` gets a token, and for how many seconds it holds, from the token endpoint (`lakeview.sharing.client.http`); it
    is called from one thread at a time.
    """

    def __init__(
        self, client_id: str, client_secret: Secret, ask: Callable[[ClientCredentials], tuple[Secret, float]]
    ) -> None:
        self.client_id = client_id
        self.client_secret = client_secret
        self.secrets = (client_secret,)
        self._ask = ask
        self._lock = threading.Lock()
        self._token: Secret | None = None
        self._until: datetime | None = None

    def __repr__(self) -> str:
        return f"ClientCredentials({self.client_id!r})"

    def header(self, now: datetime) -> str:
        with self._lock:
            if self._token is None or (self._until is not None and now >= self._until):
                self._token, seconds = self._ask(self)
                self.secrets = (self.client_secret, self._token)
                life = timedelta(seconds=seconds)
                self._until = now + max(life - _EARLY, life / 2)
            return f"Bearer {self._token.reveal()}"

    def renew(self) -> bool:
        with self._lock:
            self._token = None
        return True
