"""A web server's page about a folder to the files and folders in it: Apache, nginx, Caddy, Python and their like."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit


class IndexEntry(NamedTuple):
    """One line of an index. `size`: bytes where the page shows all of them, else 0; `modified`: milliseconds since 1970
    where the page shows a time, which is taken for UTC."""

    name: str
    is_folder: bool
    size: int = 0
    modified: int | None = None


_MARKS = re.compile(r"<title>[^<]*(?:index of|directory listing|listing of)|<h1>[^<]*index of", re.IGNORECASE)
_TIME = re.compile(r"(\d{4}-\d{2}-\d{2}|\d{2}-[A-Z][a-z]{2}-\d{4})[ T](\d{2}:\d{2}(?::\d{2})?)")
_SIZE = re.compile(r"\s(\d+)\s*$")
_FORMS = ("%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%d-%b-%Y %H:%M", "%d-%b-%Y %H:%M:%S")


class _Links(HTMLParser):
    """Every link, and the text that follows it up to the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, list[str]]] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get("href")
        if tag == "a" and address:
            self.links.append((address, []))
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self.links and not self._inside:
            self.links[-1][1].append(data)


def parse_index(page: str, url: str) -> list[IndexEntry] | None:
    """What a page about the folder `url` (which ends with a slash) links to directly below it, by name; None for a page
    that is no index: without any such link and without the words of one."""
    parser = _Links()
    parser.feed(page)
    base = urlsplit(url)
    entries: dict[str, IndexEntry] = {}
    for address, texts in parser.links:
        target = urlsplit(urljoin(url, address))
        if target.query or (target.scheme, target.netloc) != (base.scheme, base.netloc):
            continue
        below = unquote(target.path).removeprefix(unquote(base.path))
        name = below.removesuffix("/")
        if not name or below == unquote(target.path) or "/" in name or name in (".", ".."):
            continue
        text = " ".join(texts)
        size = _SIZE.search(" " + text.strip())
        entries[name] = IndexEntry(name, below.endswith("/"), int(size[1]) if size else 0, _milliseconds(text))
    if not entries and not _MARKS.search(page):
        return None
    return [entries[name] for name in sorted(entries)]


def _milliseconds(text: str) -> int | None:
    time = _TIME.search(text)
    if time is None:
        return None
    for form in _FORMS:
        try:
            return int(datetime.strptime(f"{time[1]} {time[2]}", form).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
    return None
