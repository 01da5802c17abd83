"""`lakeview audit`: whether each commit of a table kept its promises, from a terminal."""

from typing import Any

import click

from lakeview.cli.commands import command, echo_sentence, open_address
from lakeview.cli.text import as_json, hanging, width
from lakeview.cli.versions import version_number
from lakeview.model.printable import printable

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
        limit = width()
        for finding in views.audit.audit_findings(verdicts):
            for line in hanging("violated   ", printable(finding.claim), limit):
                click.echo(line)
            for name in ("evidence", "rule", "remedy"):
                for line in hanging(" " * 11 + f"{name:<10}", printable(getattr(finding, name) or ""), limit):
                    click.echo(line)
        for law, reason, commits in views.audit.reasons(verdicts).select("title", "reason", "commits").iter_rows():
            text = f"{law}: {reason} ({commits:,})"
            for line in hanging("unknowable ", printable(text), limit):
                click.echo(line)
    if (verdicts["verdict"] == "violated").any():
        click.get_current_context().exit(VIOLATED)
