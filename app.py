"""lakeview's app: the shell around every page. Run it with `streamlit run app.py`."""

import os

# A server runs for weeks and opens a table of a million files now and then: memory that is free again goes back to the
# system, polars' soon (at once it would be asked for again and again within one page), and Arrow's soon where it takes
# jemalloc and at once where it takes mimalloc. The allocators read this when they are loaded, so it comes before all
# else; of the first the last word counts, and polars leaves its own in the environment of whatever it starts.
_settings = os.environ.get("_RJEM_MALLOC_CONF", "")
os.environ["_RJEM_MALLOC_CONF"] = f"{_settings},dirty_decay_ms:300,muzzy_decay_ms:0".lstrip(",")
os.environ.setdefault("MIMALLOC_PURGE_DELAY", "0")

if __name__ == "__main__":  # for every visit
    from lakeview.app.frame import shell

    shell.run()
else:  # once, by `streamlit run`: it serves what is called `app`
    import streamlit as st

    from lakeview.app.frame import startup

    startup.expect()
    app = st.App(__file__)
