"""`python -m lakeview`: the command line."""

from __future__ import annotations

from lakeview.cli import main

main(prog_name="lakeview")
