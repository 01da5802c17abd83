"""Sharing: what is shared with me, what do I share, and who read what?"""

import streamlit as st

from lakeview.app import errors
from lakeview.app.sharing import provider, recipient
from lakeview.app.widget_state import link_widget

answer = st.empty()  # the answer stands above the controls of what it is about
if provider.is_configured():
    recipient_tab, provider_tab, audit_tab = st.tabs(
        list(recipient.TABS), key=link_widget("tab", recipient.TABS[0], recipient.TABS), on_change="rerun"
    )
    if recipient_tab.open:
        with recipient_tab, errors.messages(here="sharing"):
            recipient.shared_tables(answer)
    if provider_tab.open:
        with provider_tab, errors.messages(here="sharing"):
            provider.shares(provider.server(), answer)
    if audit_tab.open:
        with audit_tab, errors.messages(here="sharing"):
            provider.audit(provider.server(), answer)
else:
    with errors.messages(here="sharing"):
        recipient.shared_tables(answer)
    with errors.messages(here="sharing"):
        provider.set_up()
recipient.leave()
