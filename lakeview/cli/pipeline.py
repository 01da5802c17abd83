"""`lakeview pipeline`: a project of Spark Declarative Pipelines, its runs, and what they published."""

import getpass
from importlib.util import find_spec
from pathlib import Path

import click

from lakeview.cli.text import echo_frame
from lakeview.model.clock import system_clock
from lakeview.model.errors import MissingExtraError, NotATableError
from lakeview.model.printable import printable


@click.group()
def pipeline() -> None:
    """Run a pipeline of Spark, check its rows and publish them.

    The project is one of Spark Declarative Pipelines (spark-pipeline.yml), and lakeview-pipeline.yml says what becomes
    of its results.
    """


_folder = click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")


@pipeline.command()
@_folder
def init(folder: Path) -> None:
    """Write a small project that runs into a new folder."""
    _require_spark()
    from lakeview.spark.pipelines.project import write_project

    write_project(folder)
    click.echo(
        f"{printable(str(folder))} holds a pipeline; run it with\n  lakeview pipeline run {printable(str(folder))}"
    )


@pipeline.command()
@_folder
@click.option("--master", default="local[2]", show_default=True, help="The master of Spark's own session.")
@click.option("--remote", metavar="sc://HOST:PORT", help="A Spark Connect server to run on, instead of a session here.")
@click.option(
    "--memory", default="1g", show_default=True, help="Heap of the driver; with a local master of everything."
)
@click.option(
    "--conf", "conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; may be given several times."
)
@click.option("--user", help="The user name of the commits; the login name of this process without it.")
def run(folder: Path, master: str, remote: str | None, memory: str, conf: tuple[str, ...], user: str | None) -> None:
    """Check a pipeline by a dry run, run it, and publish what is new.

    Exit code 2 if anything failed. What was killed half way is finished by the next run.
    """
    pairs = [each.partition("=") for each in conf]
    if any(not name or not equals for name, equals, _ in pairs):
        raise click.BadParameter("give it as name=value", param_hint="--conf")
    _require_spark()
    from lakeview.spark.pipelines.run import Where, run_pipeline

    where = Where(master, remote, memory, {name: value for name, _, value in pairs})
    run_id = run_pipeline(
        folder, where, clock=system_clock, say=lambda line: click.echo(printable(line)), user=user or _login_name()
    )
    click.echo(f"run {run_id} succeeded")


@pipeline.command()
@click.argument("output")
@click.option("--json", "machine", is_flag=True, help="Print JSON instead of text.")
def runs(output: str, machine: bool) -> None:
    """List the runs that published below a folder, newest first."""
    from lakeview.discovery import open_table
    from lakeview.inspection import inspect_pipelines
    from lakeview.inspection.pipelines import record_address

    try:
        open_table(record_address(output, "runs"))
    except NotATableError as error:
        raise NotATableError(
            f"no run of a pipeline is recorded below {output}: {error.message}",
            fix="give the folder that lakeview-pipeline.yml of a project names as output",
            place=output,
        ) from error
    frame = inspect_pipelines(output, open_table).runs()
    echo_frame(frame if machine else frame.drop("pipeline", "ended", "duration_ms"), machine, "no runs")


def _login_name() -> str | None:
    """The name of the user of this process; None where the system has none for it, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _require_spark() -> None:
    if find_spec("pyspark") is None:
        raise MissingExtraError(
            "pipelines run on Spark, and pyspark is not installed", fix="pip install 'lakeview[spark]'"
        )
