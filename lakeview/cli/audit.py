"""`lakeview audit`: whether each commit of a table kept its promises, from a terminal."""

import click

import lakeview as lv
from lakeview.cli.commands import finding_lines, table_command
from lakeview.cli.text import as_json, echo_lines, echo_sentence
from lakeview.cli.versions import version_number

VIOLATED = 1


@table_command(
    click.option("--start", metavar="VERSION", help="The first version to audit, instead of the oldest in the log."),
    click.option("--end", metavar="VERSION", help="The last version to audit, instead of the latest."),
)
def audit(table: lv.Table, machine: bool, start: str | None, end: str | None) -> None:
    """Judge every commit by the laws of its format: proven, violated or unknowable, from the log alone.

    Exit code 1 if a commit violates a law.
    """
    verdicts = table.audit(version_number(table, start), version_number(table, end))
    if machine:
        click.echo(as_json(verdicts.to_dicts()))
    else:
        echo_sentence(lv.views.audit.sentence(verdicts))
        for finding in lv.views.audit.audit_findings(verdicts):
            echo_lines(finding_lines("violated", finding, ("evidence", "rule", "remedy")))
        for law, reason, commits in lv.views.audit.reasons(verdicts).select("title", "reason", "commits").iter_rows():
            echo_sentence(f"{law}: {reason} ({commits:,})", "unknowable ")
    if (verdicts["verdict"] == "violated").any():
        click.get_current_context().exit(VIOLATED)
