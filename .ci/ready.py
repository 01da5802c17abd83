"""Waits until the app answers, lets it register its pages, and says where it is.

The script health check runs app.py once: without it, a fresh server whose first request is a deep link shows "page not
found". Arguments: address and port as the server has them.
"""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request

SECONDS = 60
EVERY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}  # noqa: S104  # told apart, not bound to
LOOPBACK = {"127.0.0.1", "[::1]", "localhost"}


def main(address: str, port: str) -> int:
    """0 once the app is ready; 1 when it did not answer in time (the server itself says why)."""
    host = EVERY_INTERFACE.get(address, address)
    for _ in range(SECONDS * 10):
        try:
            with urllib.request.urlopen(f"http://{host}:{port}/_stcore/script-health-check", timeout=SECONDS):
                print(f"lakeview is ready: http://{'localhost' if host in LOOPBACK else host}:{port}", flush=True)
                return 0
        except urllib.error.HTTPError as error:
            print(f"app.py does not run: {error.read().decode(errors='replace')}", file=sys.stderr)
            return 1
        except OSError:
            time.sleep(0.1)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
