"""lakeview's app: the shell around every page. Run it with `streamlit run app.py`."""

from __future__ import annotations

from lakeview.ui import shell

shell.run()
