"""What has to be settled before anybody visits a server that has just started."""

from __future__ import annotations

from streamlit.runtime.pages_manager import PagesManager


def expect() -> None:
    """Lets the first visit to a server be to any page."""
    # private, and the one switch there is: until the first st.navigation of a server Streamlit takes the folder pages/
    # for the whole app, and calls a link to a page below one of its folders a link to a page that is not there
    PagesManager.uses_pages_directory = False
