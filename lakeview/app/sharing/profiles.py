"""Profiles that this server has files of: those uploaded, and that of the demo lake shared on this machine."""

import json
import socket

import msgspec
import streamlit as st

from lakeview.app import cache, uploads
from lakeview.model import config
from lakeview.model.errors import InvalidRequestError
from lakeview.sharing.client.limits import PROFILE_BYTES
from lakeview.sharing.client.profile import parse_profile
from lakeview.sharing.server import require_extra

_MOST_UPLOADS = 100
"""Of more the oldest are removed."""


def can_be_written() -> bool:
    """False where tables are opened below configured roots only: this folder is none of them."""
    return not config.settings().roots


def upload(name: str, content: bytes) -> str:
    """The name in links of an uploaded profile (`uploads`); errors name it as `name`.

    InvalidRequestError for what is no profile, UnsupportedTableError for a version or credentials not implemented.
    """
    if len(content) > PROFILE_BYTES:
        raise InvalidRequestError("the file is too large for a profile", fix="upload the file that you were sent")
    parse_profile(content, name)
    earlier = sorted(uploads.folder().glob("uploaded-*"), key=lambda file: file.stat().st_mtime)
    for oldest in earlier[: -_MOST_UPLOADS + 1]:
        oldest.unlink(missing_ok=True)
    return uploads.write("uploaded", name, content)


@st.cache_resource(show_spinner=False)
def demo_share(lake: str) -> str:
    """The name in links of a profile that opens the demo lake in this folder, served on a loopback port until this
    process ends.

    MissingExtraError without the extra `server`.
    """
    require_extra()
    from lakeview.sharing.server.config_file import folder_settings
    from lakeview.sharing.server.hub import open_folder
    from lakeview.sharing.server.serving import serve_in_background

    settings = folder_settings(lake)
    listener = socket.create_server((settings.host, 0))
    port = int(listener.getsockname()[1])
    hub, document = open_folder(msgspec.structs.replace(settings, port=port), cache.now)
    serve_in_background(hub, listener)
    return uploads.write("served", "demo-lake.share", json.dumps(document).encode())
