"""What all requests share: settings that follow their file, keys, tokens, open tables, limits and the audit log."""

import asyncio
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from lakeview.model.clock import Clock, system_clock
from lakeview.model.errors import LakeviewError
from lakeview.sharing.server.audit import AuditLog
from lakeview.sharing.server.catalogue import Catalogue
from lakeview.sharing.server.config_file import check_settings, read_settings
from lakeview.sharing.server.limits import RateLimit
from lakeview.sharing.server.settings import Settings
from lakeview.sharing.server.signing import FileSigner, Keys, StoreUrls, TokenSigner, load_keys
from lakeview.sharing.server.sources import Sources
from lakeview.sharing.server.tokens import PREFIX, Token, TokenFile, digest, profile_of

T = TypeVar("T")
_LOG = logging.getLogger("lakeview.sharing.server")
_CHECK_SECONDS = 1.0
_THREADS, _LOADS, _OWN_LOADS, _COMPUTATIONS = 16, 8, 2, 2


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
        self.catalogue = Catalogue(check_settings(settings))
        self._config = config
        self._file_stamp = self._stamp()
        self._last_check = steady()
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
        self._limits: dict[tuple[str, str | None], CapacityLimiter] = {}

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.catalogue.settings

    # -- configuration

    def reload_if_changed(self) -> None:
        """Take up a changed configuration; looks at most once a second."""
        if self._config is None or self.steady() - self._last_check < _CHECK_SECONDS:
            return
        self._last_check = self.steady()
        self.reload()

    def reload(self) -> bool:
        """Read the configuration again if its file has changed; True if it is now another."""
        with self._reading:
            stamp = self._stamp()
            if self._config is None or stamp == self._file_stamp:
                return False
            self._file_stamp = stamp
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
            stat = None if self._config is None else os.stat(self._config)
        except OSError:
            return None
        return None if stat is None else (stat.st_mtime_ns, stat.st_size)

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
                _LOG.error("every request is refused: %s", fault)
            return self._given_tokens
        finally:
            self._token_fault = fault

    # -- work in threads

    async def work(self, function: Callable[[], T]) -> T:
        """Run a short call of a store in a thread; 16 at a time, the others wait."""
        return await anyio.to_thread.run_sync(function, limiter=self._limit("work", _THREADS))

    async def load(self, recipient: str, function: Callable[[], T], turn: asyncio.Lock | None = None) -> T:
        """Run what reads and decodes a log in a thread: 2 at a time for one recipient, 8 for all.

        `turn`: a lock to hold meanwhile. Recipients wait for it side by side, a recipient's own requests before it.
        """
        async with self._limit("load", _OWN_LOADS, recipient), turn or nullcontext():
            return await anyio.to_thread.run_sync(function, limiter=self._limit("load", _LOADS))

    async def compute(self, recipient: str, function: Callable[[], T]) -> T:
        """Run what takes the processor and no store in a thread: one at a time for one recipient, 2 for all.

        Each of these threads competes for the interpreter's lock with the event loop: a request of another client that
        takes the lock five times waits for it as often.
        """
        async with self._limit("compute", 1, recipient):
            return await anyio.to_thread.run_sync(function, limiter=self._limit("compute", _COMPUTATIONS))

    def _limit(self, kind: str, most: int, recipient: str | None = None) -> CapacityLimiter:
        """Made when it is first needed: a limiter belongs to the event loop that runs."""
        return self._limits.setdefault((kind, recipient), CapacityLimiter(most))

    def downloads(self, recipient: str) -> CapacityLimiter:
        """The downloads of one recipient that may run at a time."""
        return self._limit("download", self.settings.limits.concurrent_files, recipient)

    def seconds(self) -> int:
        """Now, in seconds since 1970."""
        return int(self.now().timestamp())


def open_folder(settings: Settings, clock: Clock) -> tuple[Hub, dict[str, Any]]:
    """The state of the server, and the profile that opens it: the only place where the token is."""
    text = PREFIX + secrets.token_urlsafe(32)
    token = Token("start", settings.recipients[0].name, digest(text), clock())
    return Hub(settings, tokens=(token,)), profile_of(settings, text, None)
