"""The files of profiles that this app was given: their names in links, and on pages, which say no path.

A link has `uploaded/<128 random bits>/team.share`, which names the file in every session until the app ends; a page
shows `team.share (uploaded)`, or `team.share` where its owner's own machine is meant.
"""

import atexit
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from lakeview.model.errors import NotATableError

_PREFIX = "lakeview-profiles-"
_WHOSE = {"uploaded": "uploaded", "served": "of this app"}
"""What a file is for, as its name begins, and what a page says of it."""
_NAME_CHARACTERS = 60
_NAME = r"(?P<purpose>uploaded|served){mark}(?P<token>[\w-]{{22}}){mark}(?P<name>[\w.-]*[\w-])"
_LINK = re.compile(rf"(?<![\w./-]){_NAME.format(mark='/')}")
_FILE = re.compile(rf"[^\s'\"#]*{_PREFIX}\w+[\\/]{_NAME.format(mark='-')}")
_NO_PROFILE, _EXPIRED = "no-profile", "expired-profile"
_FIXES = {
    ("uploaded", _EXPIRED): "ask the provider of the share for a new profile, and upload that",
    (
        "uploaded",
        _NO_PROFILE,
    ): "upload the profile again: uploads are removed when the app ends, and the oldest of very many before",
    (
        "served",
        _NO_PROFILE,
    ): "share the demo lake again, by the button on the Sharing page: it is served until the app ends",
}
"""What to do, by the file's purpose and the kind of the error."""


@cache
def folder() -> Path:
    """The one folder of such files: only this server's user can read it, and it is removed when the server ends."""
    path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def write(purpose: str, name: str, content: bytes) -> str:
    """Writes a profile that was called `name`; returns its name for links, which cannot be guessed.

    `purpose`: uploaded, or served by this app.
    """
    plain = re.sub(r"[^\w.-]", "_", name).strip(".")[-_NAME_CHARACTERS:] or "profile"
    link = f"{purpose}/{secrets.token_urlsafe(16)}/{plain}"
    file = Path(address(link, must_exist=False))
    file.touch(mode=0o600)
    file.write_bytes(content)
    return link


def address(name: str, *, must_exist: bool = True) -> str:
    """A name, or one with `#share.schema.table` after it, as an address, which begins with the file's path; any other
    text as it is.

    NotATableError if the file is not there any more.
    """
    match = _LINK.match(name)
    if match is None:
        return name
    file = folder() / "-".join(match.group("purpose", "token", "name"))
    if must_exist and not file.exists():
        reason = "is not here any more" if match["purpose"] == "uploaded" else "is not served any more"
        raise NotATableError(f"the profile {public_text(match[0])} {reason}", place=match[0], kind=_NO_PROFILE)
    return f"{file}{name[match.end() :]}"


def public_text(text: str) -> str:
    """A text with each path or name of such a file replaced by `team.share (uploaded)`."""
    return _replace(text, lambda match: f"{match['name']} ({_WHOSE[match['purpose']]})")


def own_address(text: str) -> str:
    """The address of a table as the owner of its profile writes it on a machine of their own."""
    return _replace(text, lambda match: match["name"])


def fix(kind: str, place: str | None) -> str | None:
    """What to do about an error of this kind at such a file; None at any other place."""
    match = _FILE.match(place or "") or _LINK.match(place or "")
    return None if match is None else _FIXES.get((match["purpose"], kind))


def _replace(text: str, substitute: Callable[[re.Match[str]], str]) -> str:
    return _LINK.sub(substitute, _FILE.sub(substitute, text))
