"""`lakeview engines`: which engines read and write a table, and the feature that keeps the others from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import lakeview as lv
from lakeview.cli.commands import look_command
from lakeview.cli.text import as_json, echo_frame, echo_sentence

if TYPE_CHECKING:
    from lakeview.inspection import Inspection

_READS = {"yes": "reads", "no": "fails", "unknown": "unknown"}
_WRITES = {"yes": "writes", "no": "fails", "unknown": "unknown", "never": "never"}


@look_command()
def engines(look: Inspection, machine: bool) -> None:
    """Show which engines read and write a version, problems first, and the feature to blame, from the log alone.

    JSON has the sources of each answer too.
    """
    import polars as pl

    compatibility = lv.views.engines.compatibility
    answers = compatibility.problems_first(look.engines())
    if machine:
        click.echo(as_json(answers.to_dicts()))
        return
    echo_sentence(lv.views.first_lines.engines_line(answers, look.version))
    needs = compatibility.required_features(look.requirements())
    echo_sentence(f"It requires {', '.join(needs) or 'nothing beyond the first protocol'}")
    if answers.is_empty():
        return
    for cause, counts in compatibility.causes_in_words(answers):
        echo_sentence(f"because of {cause}: {counts}")
    click.echo()
    rows = compatibility.in_words(answers)
    reads = answers["read"].replace_strict(_READS, return_dtype=pl.String)
    writes = answers["write"].replace_strict(_WRITES, return_dtype=pl.String)
    echo_frame(rows.select("engine", reads, writes, pl.col("cause").alias("because of")), machine, "")
    if notes := compatibility.notes(answers):
        click.echo()
        for names, note in notes:
            echo_sentence(f"{names}: {note}")
