"""A history to tell, as the tests of the reader have it."""

from __future__ import annotations

from tests.delta.conftest import history

__all__ = ["history"]
