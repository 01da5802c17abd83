"""`lakeview audit`: whether each commit of a table kept its promises, from a terminal."""

from typing import Any

import click

from lakeview.cli.commands import command, finding_lines, open_address
from lakeview.cli.text import as_json, echo_lines, echo_sentence
from lakeview.cli.versions import version_number

VIOLATED = 1


@command(
    click.option("--start", metavar="VERSION", help="The first version to audit, instead of the oldest in the log."),
    click.option("--end", metavar="VERSION", help="The last version to audit, instead of the latest."),
)
def audit(address: str, options: dict[str, Any], machine: bool, start: str | None, end: str | None) -> None:
    """Judge every commit by the laws of its format: proven, violated or unknowable, from the log alone.

    Exit code 1 if a commit violates a law.
    """
    from lakeview import views

    table = open_address(address, options)
    verdicts = table.audit(version_number(table, start), version_number(table, end))
    if machine:
        click.echo(as_json(verdicts.to_dicts()))
    else:
        echo_sentence(views.audit.sentence(verdicts))
        for finding in views.audit.audit_findings(verdicts):
            echo_lines(finding_lines("violated", finding, ("evidence", "rule", "remedy")))
        for law, reason, commits in views.audit.reasons(verdicts).select("title", "reason", "commits").iter_rows():
            echo_sentence(f"{law}: {reason} ({commits:,})", "unknowable ")
    if (verdicts["verdict"] == "violated").any():
        click.get_current_context().exit(VIOLATED)
