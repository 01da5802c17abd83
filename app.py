"""lakeview's app: the shell around every page. Run it with `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st

if __name__ == "__main__":  # for every visit
    from lakeview.ui import shell

    shell.run()
else:  # once, by `streamlit run`: it serves what is called `app`
    from lakeview.ui import first_visit

    first_visit.expect()
    app = st.App(__file__)
