"""The limits of what a sharing server may send, and of how long a client waits for it."""

from dataclasses import dataclass

PROFILE_BYTES = 1 << 20
"""The largest profile that is read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much. Times in seconds, sizes in bytes.

    `connect`, `idle`: to open a connection, and between two pieces of an answer; `whole`: for one answer; `patience`:
    for all attempts of a call together; `attempts`: at most so many; `body`: a JSON answer; `line`, `lines`, `stream`:
    one line, their number, and an answer of lines together.
    `pages`, `all_pages`: the number of pages of one answer or list, and the time for all of them, since the URLs of
    the first page seldom hold longer; `items`: entries of a list. `lines` and `stream` hold for all pages too.
    `plain_http`: whether http is allowed beyond loopback; `private`: whether URLs that a server hands out may lead into
    private address ranges (not where several users share one process: they would reach its network).
    """

    connect: float = 10.0
    idle: float = 60.0
    whole: float = 900.0
    patience: float = 60.0
    attempts: int = 8
    body: int = 16 << 20
    line: int = 32 << 20
    lines: int = 20_000_000
    stream: int = 4 << 30
    pages: int = 10_000
    all_pages: float = 3600.0
    items: int = 1_000_000
    plain_http: bool = False
    private: bool = True
