"""Pages of an answer, or of a list, to the whole: they end, are bounded together, and are about one table."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from lakeview.model.errors import SharingError, StoreUnavailableError
from lakeview.sharing.client.answers import Answer
from lakeview.sharing.client.limits import Limits
from lakeview.sharing.client.refusals import broken_protocol, too_large
from lakeview.sharing.protocol.messages import EndStreamAction


class Pages:
    """The pages of one answer or list. SharingError beyond the limits, which hold for all pages together."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._end = time.monotonic() + limits.all_pages
        self._tokens: set[str] = set()
        self._lines = 0
        self._bytes = 0

    def follow(self, token: str) -> None:
        """Check that there may be a page after the ones before it. SharingError for a token that was given already and
        for too many pages, StoreUnavailableError where they take too long."""
        if token in self._tokens or len(self._tokens) >= self._limits.pages:
            raise SharingError(
                "the server gave the token of a page that was read already: its list has no end"
                if token in self._tokens
                else f"the server gave more than {self._limits.pages:,} pages: its list has no end",
                fix="ask the operator of the server",
                kind="endless-pages",
            )
        if time.monotonic() > self._end:
            raise StoreUnavailableError(
                f"the server's pages had no end after {self._limits.all_pages:,.0f} seconds",
                fix="try again, or ask for fewer files with a filter",
            )
        self._tokens.add(token)

    def count(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines of one page, counted with those of the pages before it."""
        for line in lines:
            self._lines += 1
            self._bytes += len(line)
            if self._lines > self._limits.lines or self._bytes > self._limits.stream:
                most = f"{self._limits.lines:,} lines or {self._limits.stream:,} bytes"
                raise too_large(f"sent pages of more than {most} together", "ask for fewer files with a filter")
            yield line

    def whole(self, page: Callable[[str | None], Answer]) -> Answer:
        """All pages of an answer as one; `page` requests the page of a token. SharingError for pages about different
        tables or versions."""
        first = answer = page(None)
        others: list[Answer] = []
        while answer.end is not None and (token := answer.end.next_page_token):
            self.follow(token)
            answer = page(token)
            if answer.head.definition != first.head.definition:
                raise broken_protocol(
                    "the pages of one answer are about different versions of the table", "different-pages"
                )
            others.append(answer)
        return _join([first, *others]) if others else first


def _join(pages: Sequence[Answer]) -> Answer:
    ends = [page.end for page in pages if page.end is not None]
    times = [end.min_url_expiration_timestamp for end in ends if end.min_url_expiration_timestamp is not None]
    end = msgspec.structs.replace(
        pages[-1].end or EndStreamAction(),
        min_url_expiration_timestamp=min(times, default=None),
        refresh_token=next((end.refresh_token for end in ends if end.refresh_token), None),
    )
    files = [file for page in pages for file in page.files]
    return Answer(pages[0].head, files, [schema for page in pages for schema in page.schemas], end)
