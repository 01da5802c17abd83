"""Sharing: what is shared with me, what do I share, and who read what?"""

from __future__ import annotations

import streamlit as st

from lakeview.app import errors
from lakeview.app.sharing import provider, recipient
from lakeview.app.widget_state import held

received, shared, read = st.tabs(
    list(recipient.TABS), key=held("tab", recipient.TABS[0], recipient.TABS), on_change="rerun"
)
if received.open:
    with received, errors.shown(here="sharing"):
        recipient.browse()
if shared.open:
    with shared, errors.shown(here="sharing"):
        served = provider.server()
        if served is not None:
            provider.shares(served)
if read.open:
    with read, errors.shown(here="sharing"):
        served = provider.server()
        if served is not None:
            provider.audit(served)
recipient.leave()
