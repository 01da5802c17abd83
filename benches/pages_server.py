"""The app as a server whose requests to stores are counted: `python benches/pages_server.py PORT COUNTS`.

Runs what `streamlit run app.py` runs, and writes the number of calls of each kind into the file COUNTS as JSON, twice
a second while they grow.
"""

from __future__ import annotations

import json
import runpy
import sys
import threading
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_EVERY = 0.5


def count_requests(target: Path) -> None:
    """Adds up the requests of all stores of this process, and tells them to a file."""
    from lakeview.storage.interface import Storage

    counts: Counter[str] = Counter()
    lock = threading.Lock()
    own = Storage.count

    def counting(self: Storage, kind: str, times: int = 1) -> None:
        own(self, kind, times)
        with lock:
            counts[kind] += times

    Storage.count = counting  # type: ignore[method-assign]  # a bench looks on, the app needs no such hook
    stop, last = threading.Event(), Counter[str]()

    def tell() -> None:
        nonlocal last
        while not stop.wait(_EVERY):
            with lock:
                now = counts.copy()
            if now != last:
                target.write_text(json.dumps(now))
                last = now

    threading.Thread(target=tell, daemon=True).start()


def main() -> None:
    """Serves until it is ended."""
    port, target = int(sys.argv[1]), Path(sys.argv[2])
    runpy.run_path(str(ROOT / "app.py"), run_name="app")  # what `streamlit run` does first: before lakeview is imported
    from streamlit.web import bootstrap

    count_requests(target)
    options = {
        "server_port": port,
        "server_address": "127.0.0.1",
        "server_headless": True,
        "server_fileWatcherType": "none",
    }
    bootstrap.load_config_options(options)
    bootstrap.run(str(ROOT / "app.py"), is_hello=False, args=[], flag_options=options)


if __name__ == "__main__":
    main()
