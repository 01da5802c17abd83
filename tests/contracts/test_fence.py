"""The tests' own rule: they talk to this machine only."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.conftest import OutsideConnectionError

NOT_LOOPBACK = ("0.0.0.0", 9)  # noqa: S104  # nothing is bound to it
"""Refused by its name, and yet this machine, should the fence be down."""


@pytest.mark.parametrize("method", ["connect", "connect_ex"])
def test_a_socket_connects_to_the_loopback_only(method: str) -> None:
    with socket.socket() as outside, pytest.raises(OutsideConnectionError, match=r"not to 0\.0\.0\.0"):
        getattr(outside, method)(NOT_LOOPBACK)


def test_an_event_loop_connects_to_the_loopback_only() -> None:
    with pytest.raises(OutsideConnectionError):
        asyncio.run(asyncio.open_connection(*NOT_LOOPBACK))
