"""`python -m lakeview.cli`: the command line of a checkout that is not installed."""

from __future__ import annotations

from lakeview.cli import main

main(prog_name="lakeview")
