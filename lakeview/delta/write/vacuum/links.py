"""Links inside a table of this machine to what they lead to: the log or live files may lie there under other names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

import polars as pl

from lakeview.delta.log.paths import LOG_FOLDER
from lakeview.model.addresses import below, is_local

_MOST_LINKS = 40
"""Links that Linux follows for one path."""


def without_linked(files: pl.DataFrame, needed: pl.Series, root: str) -> pl.DataFrame:
    """The rows of LISTING to which no link leads: that of the log's folder, of a folder of `needed` files or of a file
    beside them. `needed`: their keys. Costs one listing of each of these folders."""
    if files.is_empty() or not is_local(root):
        return files
    folders = {"", LOG_FOLDER, *needed.str.extract("^(.*)/").drop_nulls()}
    real = os.path.realpath(root)
    places = {os.path.relpath(place, real) for place in _targets(root, real, folders) if below(place, real)} - {"."}
    if not places:
        return files

    def is_linked(name: str) -> bool:
        parts = name.split("/")
        return any("/".join(parts[:end]) in places for end in range(1, len(parts) + 1))

    return files.filter(pl.Series([not is_linked(name) for name in files["name"]], dtype=pl.Boolean))


def _targets(root: str, real: str, folders: Iterable[str]) -> Iterator[str]:
    """Where folders lie that are reached by a link, and what the links in all of them lead to."""
    for folder in folders:
        links: list[str] = []
        with suppress(OSError, ValueError):  # a folder that is gone, or that cannot be there
            place = os.path.realpath(os.path.join(root, folder))
            if place != os.path.normpath(os.path.join(real, folder)):
                yield place
            with os.scandir(place) as entries:
                links += [entry.path for entry in entries if entry.is_symlink()]
        for link in links:
            yield from _steps(link)


def _steps(link: str) -> Iterator[str]:
    """What a link leads to, and each link on the way there: a vacuum would leave the file and delete the way."""
    path = link
    with suppress(OSError):  # a link that is gone
        for _ in range(_MOST_LINKS):
            folder, name = os.path.split(os.path.join(os.path.dirname(path), os.readlink(path)))
            path = os.path.join(os.path.realpath(folder), name)
            yield path
            if not os.path.islink(path):
                return
