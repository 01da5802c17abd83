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

HINTS = 1000
HINT_CHARACTERS, HINT_TOKENS = 16 << 10, 4000
"""Of all SQL hints of a request together: 300 comparisons joined by AND are 3,600 characters and 1,200 tokens. A hint
that goes beyond is dropped, later ones that fit are read."""

JSON_HINT_CHARACTERS = 128 << 10
"""Nearly a thousand comparisons. A longer tree skips no file."""
