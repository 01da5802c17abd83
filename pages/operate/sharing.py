"""Sharing: what is shared with me, what do I share, and who read what?"""

from __future__ import annotations

import streamlit as st

from lakeview.ui import errors, sharing, sharing_out
from lakeview.ui.held import held

recipient, shared, read = st.tabs(list(sharing.TABS), key=held("tab", sharing.TABS[0], sharing.TABS), on_change="rerun")
if recipient.open:
    with recipient, errors.shown(here="sharing"):
        sharing.browse()
if shared.open:
    with shared, errors.shown(here="sharing"):
        served = sharing_out.server()
        if served is not None:
            sharing_out.shares(served)
if read.open:
    with read, errors.shown(here="sharing"):
        served = sharing_out.server()
        if served is not None:
            sharing_out.audit(served)
sharing.leave()
