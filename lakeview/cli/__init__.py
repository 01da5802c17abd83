"""The command line: an address to text for a terminal, or to JSON for a program.

`lakeview check lake/orders` examines a table's log; the others show what the log knows. `main` is the entry point.
"""

from lakeview.cli import app, audit, columns, engines, lake, look, maintenance, profile  # noqa: F401 (their commands register themselves)
from lakeview.cli.commands import main
from lakeview.cli.pipeline import pipeline
from lakeview.cli.share import share

main.add_command(pipeline)
main.add_command(share)

__all__ = ["main"]
