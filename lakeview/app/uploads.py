"""The files of profiles that this app was given, and how pages name them: as their owner knows them, without a path."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

FOLDER = "lakeview-profiles-"
"""How the name of the one folder begins that such files lie in."""

_WHOSE = {"upload": "uploaded", "demo": "of this app"}
_NAME_CHARACTERS = 60
_FILE = re.compile(rf"[^\s'\"#]*{FOLDER}\w+[\\/](?P<purpose>upload|demo)-[\w-]{{22}}-(?P<name>[\w.-]*[\w-])")
_FIXES = {
    "expired-profile": "ask the provider of the share for a new profile, and upload that",
    "no-profile": "upload the profile again: uploads are removed when the app ends, and the oldest of very many before",
}
"""What to do, by the kind of the error."""


def path(folder: Path, purpose: str, name: str) -> Path:
    """Where to write a profile that was called `name`, under a path that cannot be guessed; `purpose`: upload, demo."""
    plain = re.sub(r"[^\w.-]", "_", name).strip(".")[-_NAME_CHARACTERS:] or "profile"
    return folder / f"{purpose}-{secrets.token_urlsafe(16)}-{plain}"


def public_text(text: str) -> str:
    """A text with each path of such a file replaced by `team.share (uploaded)`."""
    return _FILE.sub(lambda found: f"{found['name']} ({_WHOSE[found['purpose']]})", text)


def own_address(address: str) -> str:
    """The address of a table as the owner of its profile writes it on a machine of their own."""
    return _FILE.sub(lambda found: found["name"], address)


def fix(kind: str, place: str | None) -> str | None:
    """What to do about an error of this kind at an uploaded file; None at any other place."""
    found = _FILE.match(place or "")
    return _FIXES.get(kind) if found is not None and found["purpose"] == "upload" else None
