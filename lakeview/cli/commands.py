"""The commands: each opens a table, asks it one question and prints the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

import lakeview as lv
from lakeview.cli.text import as_json, echo_frame, echo_lines, echo_sentence, hanging, pairs, width
from lakeview.cli.versions import (
    at_option,
    fit_columns,
    no_commits_text,
    ref_option,
    snapshot_named,
    version_number,
    version_option,
    version_text,
    with_heads,
    with_names,
    with_refs,
)
from lakeview.model.config import VERSION
from lakeview.model.errors import InvalidRequestError, LakeviewError
from lakeview.model.findings import Finding, Severity, severity_counts
from lakeview.model.printable import printable

if TYPE_CHECKING:
    from lakeview.inspection import Inspection

CANNOT_OPEN = 2

_FILES = {
    "path": "path", "size": "size", "records": "rows", "deleted_records": "deleted rows", "modified": "modified",
    "partition_text": "partition",
}  # fmt: skip
"""Columns of FILES that fit a line, and their heads."""


class _Commands(click.Group):
    """A group whose commands tell our errors in two lines, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LakeviewError as error:
            click.echo(f"error: {printable(error.message)}", err=True)
            if error.fix:
                click.echo(f"fix: {printable(error.fix)}", err=True)
            ctx.exit(CANNOT_OPEN)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, package_name="lakeview", message="lakeview %(version)s")
def main() -> None:
    """Look into a lakehouse table: what its log knows, from nothing but its address.

    Exit codes: 0 it went well, 1 `check` found what --fail-on asks for, 2 the table cannot be opened or asked.
    """


def _options(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> dict[str, Any]:
    """`key=value` words as storage options, values as `option_value` reads them."""
    if not words:
        return {}
    from lakeview.storage.options import option_value

    options: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise click.BadParameter("give it as key=value")
        try:
            options[key] = option_value(key, value)
        except InvalidRequestError as error:
            raise click.BadParameter(error.message) from error
    return options


_address = click.argument("address")
_option = click.option(
    "--option", "options", multiple=True, metavar="KEY=VALUE", callback=_options,
    help="A storage option, by its name in deltalake or fsspec. May be given several times.",
)  # fmt: skip
_json = click.option("--json", "machine", is_flag=True, help="Print JSON instead of text.")


def command(*decorators: Callable[[Any], Any]) -> Callable[[Callable[..., None]], click.Command]:
    """A command of the group with an address and what goes with it, its own options first."""

    def register(function: Callable[..., None]) -> click.Command:
        callback: Any = function
        for decorate in (_json, _option, *reversed(decorators), _address):
            callback = decorate(callback)
        return main.command()(callback)

    return register


def open_address(address: str, options: dict[str, Any]) -> lv.Table:
    """The table at an address."""
    from lakeview.discovery import open_table

    return open_table(address, storage_options=options or None)


def table_command(*decorators: Callable[[Any], Any]) -> Callable[[Callable[..., None]], click.Command]:
    """As `command`, of a function that is given the table at the address."""

    def register(function: Callable[..., None]) -> click.Command:
        @wraps(function)
        def with_table(address: str, options: dict[str, Any], **choices: Any) -> None:
            function(open_address(address, options), **choices)

        return command(*decorators)(with_table)

    return register


def look_command(*decorators: Callable[[Any], Any]) -> Callable[[Callable[..., None]], click.Command]:
    """As `command`, of a function that is given the inspection of the table at the address, at a version or at the
    newest one of a branch or tag, which are options."""

    def register(function: Callable[..., None]) -> click.Command:
        @wraps(function)
        def with_look(table: lv.Table, version: str | None, ref: str | None, **choices: Any) -> None:
            function(lv.inspect(table, version_number(table, version), ref=ref), **choices)

        return table_command(*decorators, version_option, ref_option)(with_look)

    return register


@table_command(
    click.option(
        "--fail-on", type=click.Choice(["broken", "attention"]), default="broken", show_default=True,
        help="The least grave finding that makes the exit code 1.",
    )
)  # fmt: skip
def check(table: lv.Table, machine: bool, fail_on: str) -> None:
    """Examine a table's log: what it breaks, what is odd, what is well.

    Works on tables that no longer open. Exit code 1 if anything is broken.
    """
    findings = table.check(now=datetime.now(UTC))
    grave = [Severity.BROKEN] if fail_on == "broken" else [Severity.BROKEN, Severity.ATTENTION]
    if machine:
        click.echo(as_json([record(f) for f in findings]))
    else:
        echo_lines(report(findings))
    if any(f.severity in grave for f in findings):
        click.get_current_context().exit(1)


@look_command()
def health(look: Inspection, machine: bool) -> None:
    """Show what needs attention in a table's layout, history and maintenance, from the log alone."""
    findings = look.health_findings()
    if machine:
        click.echo(as_json([record(f) | {"effect": f.effect, "command": f.command} for f in findings]))
    else:
        is_latest = look.version == look.frames.latest
        echo_sentence(lv.views.health.findings.verdict(findings, is_latest=is_latest))
        echo_lines(report(findings))


def record(finding: Finding) -> dict[str, object]:
    """A finding as JSON has it."""
    names = ("id", "severity", "claim", "evidence", "threshold", "place", "rule", "remedy")
    return {name: getattr(finding, name) for name in names}


def report(findings: Sequence[Finding]) -> Iterator[str]:
    """The lines of findings, and how many there are of each severity."""
    for finding in findings:
        head = finding.severity.value
        if finding.severity is Severity.PASS:
            text = ": ".join(filter(None, (finding.claim, finding.evidence)))
            yield from hanging(head.ljust(11), printable(text), width())
            continue
        yield from finding_lines(head, finding, ("evidence", "place", "rule", "remedy"))
        if finding.command:  # whole on one line, to be copied
            yield " " * 11 + f"{'command':<10}{printable(finding.command)}"
    yield severity_counts(findings)


def finding_lines(head: str, finding: Finding, fields: Sequence[str]) -> Iterator[str]:
    """The lines of one finding: its claim behind a head, and below it those of these fields that it has."""
    yield from hanging(head.ljust(11), printable(finding.claim), width())
    for name in fields:
        if text := getattr(finding, name):
            yield from hanging(" " * 11 + f"{name:<10}", printable(text), width())


@table_command(version_option, at_option, ref_option)
def show(table: lv.Table, machine: bool, version: str | None, at: str | None, ref: str | None) -> None:
    """Show what a table is at a version: rows, files, bytes, columns, protocol, properties."""
    now = snapshot_named(table, version, at, ref)
    facts: dict[str, object] = {
        "address": now.location,
        "format": now.format,
        "name": now.name,
        "id": now.id,
        "description": now.description,
        "version": now.version if machine else version_text(now.version),
        "committed": now.timestamp,
        "created": now.created,
        "rows": now.num_records if machine or now.num_records is not None else lv.views.sums.rows_text(now),
        "files": now.num_files,
        "bytes": now.size_bytes,
        "columns": len(now.schema),
        "partitioned_by": now.partition_columns,
        "protocol": now.protocol.label,
        "features": list(now.protocol.features),
        "properties": now.properties,
    }
    if machine:
        click.echo(as_json(facts))
        return
    echo_sentence(lv.views.first_lines.contents_line(now))
    empty = {"name", "description", "partitioned_by", "features", "properties"}
    fields = {k.replace("_", " "): v for k, v in facts.items() if v not in (None, [], {}) or k not in empty}
    fields |= {k: ", ".join(map(str, v)) for k, v in fields.items() if isinstance(v, list)}
    properties = fields.pop("properties", {})
    if isinstance(properties, dict):
        again = ("comment", now.description)  # Iceberg's description is a property
        fields |= {f"  {printable(k)}": v for k, v in properties.items() if (k, v) != again}
    echo_lines(pairs(fields, limit=width()))


@table_command(click.option("--limit", type=click.IntRange(min=1), help="At most so many commits, newest first."))
def history(table: lv.Table, machine: bool, limit: int | None) -> None:
    """Show what happened, commit by commit, newest first."""
    commits = table.history(limit)
    nothing = no_commits_text(table.latest_version)
    if machine or commits.is_empty():
        echo_frame(commits, machine, nothing)
        return
    lines, of_all = fit_columns(with_names(with_refs(with_heads(commits), table)), width())
    echo_frame(lines, machine, nothing)
    for head, value in of_all.items():
        click.echo(f"{head} of all: {printable(value)}")


@table_command()
def refs(table: lv.Table, machine: bool) -> None:
    """List the branches and tags of a table: the version that each ends at, and how long it is retained."""
    frame = table.refs()
    echo_frame(frame if machine else with_names(frame), machine, "a table of this format has no branches and no tags")


@table_command(version_option, ref_option)
def files(table: lv.Table, machine: bool, version: str | None, ref: str | None) -> None:
    """List the live data files at a version.

    A terminal shows paths below the folder that all files share, and of a UUID in a name the first digits.
    """
    import polars as pl

    now = snapshot_named(table, version, ref=ref)
    keys = lv.views.partitions.keys.partition_names(now)
    heads = {column: head for column, head in _FILES.items() if column != "partition_text" or keys}
    frame = now.files if machine else now.files.select(pl.col(column).alias(head) for column, head in heads.items())
    if not machine and now.num_files:
        echo_sentence(_sizes(now))
    if not machine and width() is not None:
        names = lv.views.files.names
        short = names.with_short_paths(now.files, lv.views.files.sizes.common_folder(now.files["path"]))
        partitions = lv.views.partitions.keys.short_names(short["partition_text"], keys)
        paths = names.short_names(short["file"]).alias("path")
        frame = frame.with_columns(paths, *([partitions.alias("partition")] if keys else ()))
    echo_frame(frame, machine, "no files")


def _sizes(now: lv.Snapshot) -> str:
    """How large the files of a version are, and how many would do."""
    units, facts = lv.views.units, lv.views.files.sizes.file_layout(now).facts
    size, median = units.format_bytes(facts.bytes), units.format_bytes(facts.median_size)
    fewer = facts.ideal_files is not None and facts.ideal_files < facts.files
    would_do = f"; {facts.ideal_files:,} would do" if fewer else ""
    return f"{units.count_text(facts.files, 'file')}, {size}, with a median of {median}{would_do}"


@table_command()
def versions(table: lv.Table, machine: bool) -> None:
    """List the versions the log holds: which can still be read, and why not."""
    frame = table.versions()
    if not machine and not frame.is_empty():
        echo_sentence(lv.views.first_lines.versions_line(frame))
    echo_frame(frame if machine else with_names(frame), machine, "no versions")
