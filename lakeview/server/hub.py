"""What all requests share: settings that follow their file, keys, tokens, open tables, limits and the audit log."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from lakeview.delta.write.writer import system_clock
from lakeview.errors import LakeviewError
from lakeview.server.audit import AuditLog
from lakeview.server.catalogue import Catalogue
from lakeview.server.config_file import checked, read_settings
from lakeview.server.limits import RateLimit
from lakeview.server.settings import Settings
from lakeview.server.signing import FileSigner, Keys, TokenSigner, load_keys
from lakeview.server.sources import Sources
from lakeview.server.tokens import Token, TokenFile
from lakeview.server.urls import StoreUrls

T = TypeVar("T")
Clock = Callable[[], datetime]
_LOG = logging.getLogger("lakeview.server")
_LOOK_EVERY = 1.0
_THREADS = 16


class Hub:
    """The running server's state. `now` gives aware moments, `steady` seconds that only grow.

    `config`: the file that the settings are read from again when it changes; a broken one keeps the old settings and is
    told in the log. `tokens`: live ones that are in no file.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        config: Path | None = None,
        tokens: tuple[Token, ...] = (),
        now: Clock = system_clock,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.now = now
        self.steady = steady
        self.catalogue = Catalogue(checked(settings))
        self._config = config
        self._seen = self._stamp()
        self._looked = steady()
        self._given_tokens = tokens
        self._token_file = self._tokens_of(settings)
        self._token_fault: str | None = None
        self._reading = threading.Lock()
        keys = Keys.new() if settings.keys is None else load_keys(Path(settings.keys))
        self.files = FileSigner(keys.files)
        self.sealer = TokenSigner(keys.tokens)
        self.sources = Sources(self.settings, now)
        self.store_urls = StoreUrls()
        self.audit = None if settings.audit is None else AuditLog(settings.audit, now)
        limits = settings.limits
        self.api_rate = RateLimit(limits.api_rate, limits.api_burst, steady)
        self.file_rate = RateLimit(limits.files_rate, limits.files_burst, steady)
        self.failures = RateLimit(limits.failures_rate, limits.failures_burst, steady)
        self._downloads: dict[str, CapacityLimiter] = {}
        self._threads: CapacityLimiter | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.catalogue.settings

    # -- configuration

    def follow(self) -> None:
        """Take up a changed configuration; looks at most once a second."""
        if self._config is None or self.steady() - self._looked < _LOOK_EVERY:
            return
        self._looked = self.steady()
        self.reload()

    def reload(self) -> bool:
        """Read the configuration again if its file has changed; True if it is now another."""
        with self._reading:
            stamp = self._stamp()
            if self._config is None or stamp == self._seen:
                return False
            self._seen = stamp
            try:
                settings, warnings = read_settings(self._config)
            except LakeviewError as error:
                _LOG.error("the configuration in force stays, the changed one is broken: %s", error)
                return False
            for warning in warnings:
                _LOG.warning("%s", warning)
            if settings.tokens != self.settings.tokens:
                self._token_file = self._tokens_of(settings)
            self.catalogue = Catalogue(settings)
            self.sources.configure(settings)
            _LOG.info("the configuration was read again")
            return True

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = None if self._config is None else os.stat(self._config)
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size)

    def _tokens_of(self, settings: Settings) -> TokenFile | None:
        return None if settings.tokens is None else TokenFile(Path(settings.tokens), self.now)

    def known_tokens(self) -> tuple[Token, ...]:
        """Every token that may be shown: none of a file that is broken, which the log tells once."""
        if self._token_file is None:
            return self._given_tokens
        fault = None
        try:
            return (*self._given_tokens, *self._token_file.tokens())
        except LakeviewError as error:
            fault = str(error)
            if fault != self._token_fault:
                _LOG.error("nobody is let in: %s", fault)
            return self._given_tokens
        finally:
            self._token_fault = fault

    # -- work beside the event loop

    async def work(self, function: Callable[[], T]) -> T:
        """Run what blocks in a thread; so many at a time, the others wait."""
        if self._threads is None:
            self._threads = CapacityLimiter(_THREADS)
        return await anyio.to_thread.run_sync(function, limiter=self._threads)

    def downloads(self, recipient: str) -> CapacityLimiter:
        """The downloads of one recipient that may run at a time."""
        return self._downloads.setdefault(recipient, CapacityLimiter(self.settings.limits.concurrent_files))

    def seconds(self) -> int:
        """Now, in seconds since 1970."""
        return int(self.now().timestamp())

    @staticmethod
    def request_id() -> str:
        """A name for one request, for the audit log and for people who ask about it."""
        return secrets.token_hex(8)
