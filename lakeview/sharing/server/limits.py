"""The limits of what a request may send, checked where it comes in. Limits of cost and rate are settings."""

from __future__ import annotations

HEAD_BYTES = 64 << 10
"""The request line and all headers."""

HEADERS = 200
"""Header lines; clients send about twenty."""

HTTP_VERSIONS = ("1.0", "1.1")

TOKEN_CHARACTERS = 4096
"""A bearer token."""

RESULTS = 500
"""Items of one page of a listing."""

DIGITS = 19
"""Digits of a number in a parameter, those of 2^63."""
