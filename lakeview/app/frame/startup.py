"""What has to be settled before anybody visits a server that has just started."""

import ctypes
from contextlib import suppress
from importlib import import_module
from threading import Thread

from streamlit.runtime.pages_manager import PagesManager

from lakeview.app.query.idle import IDLE

_MMAP_THRESHOLD, _LARGE = -3, 128 << 10
_AHEAD = ("lakeview.discovery", "lakeview.views", "lakeview.charts", "pandas")
"""What every page needs sooner or later, pandas for Streamlit's own tables: two seconds of loading."""


def expect() -> None:
    """Lets the first visit to a server be to any page, and find loaded what pages need; large pieces of memory go back
    to the system once freed."""
    # private, and the one switch there is: until the first st.navigation of a server Streamlit takes the folder pages/
    # for the whole app, and calls a link to a page below one of its folders a link to a page that is not there
    PagesManager.uses_pages_directory = False
    # of the C library's own allocator, which decoders of Avro use: left to itself it holds on to a gigabyte after a
    # million files. Where it is another library it has no such switch
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE)
    IDLE.enable()
    Thread(target=_load_ahead, name="lakeview-ahead", daemon=True).start()


def _load_ahead() -> None:
    """Modules are loaded before the first visit; a visit that comes before that waits for what it needs."""
    for name in _AHEAD:
        import_module(name)
