"""One inspection of a pipeline: the three tables below its output root to the answers about its runs."""

from collections.abc import Callable

import polars as pl

from lakeview.model.addresses import normalise, resolved_in
from lakeview.model.errors import NotATableError
from lakeview.model.pipelines import ADDRESSES, FOLDER, TABLES
from lakeview.model.table import Table
from lakeview.views import pipelines


class PipelineInspection:
    """Answers about the pipelines that publish below `root`. Rows are read when an answer is asked for the first time.

    `read`: a name and an address to the rows of a table (`read_records`), NotATableError where none is. A table that is
    not there yet counts as empty.
    """

    def __init__(self, root: str, read: Callable[[str, str], pl.DataFrame]) -> None:
        self.root = root.rstrip("/")
        self._read = read
        self._frames: dict[str, pl.DataFrame] = {}

    def frame(self, name: str) -> pl.DataFrame:
        """The rows of `runs`, `expectations` or `lineage`, with the columns of `lakeview.model.pipelines`.

        A column that a table does not have is null, and one of its own that is not declared is left out.
        """
        if name not in self._frames:
            try:
                self._frames[name] = self._resolve_addresses(self._read(name, record_address(self.root, name)))
            except NotATableError:
                self._frames[name] = pl.DataFrame(schema=TABLES[name])
        return self._frames[name]

    def _resolve_addresses(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with whole addresses: those of tables below the root are recorded relative to it."""
        root = normalise(self.root)
        names = [name for name in ADDRESSES if name in rows.columns]
        return rows.with_columns(
            pl.Series(name, [None if each is None else resolved_in(each, root) for each in rows[name]], pl.String())
            for name in names
        )

    def has_runs(self) -> bool:
        """True if any run is recorded."""
        return not self.frame("runs").is_empty()

    def runs(self) -> pl.DataFrame:
        """RUN_RESULTS (`lakeview.views.pipelines.results`): one row a run, newest first."""
        return pipelines.run_results(self.frame("runs"), self.frame("expectations"))

    def steps(self, run_id: str) -> pl.DataFrame:
        """STEP_RESULTS of a run, in order."""
        return pipelines.step_results(self.frame("runs"), run_id)

    def expectations(self, run_id: str | None = None) -> pl.DataFrame:
        """EXPECTATION_RESULTS of a run or of all runs, newest first."""
        return pipelines.expectation_results(self.frame("expectations"), run_id)

    def lineage(self, run_id: str | None = None) -> pl.DataFrame:
        """LINEAGE rows of a run or of all runs, oldest first."""
        rows = self.frame("lineage").sort("timestamp", "output", "output_version", "input")
        return rows if run_id is None else rows.filter(pl.col("run_id") == run_id)

    def upstream(self, output: str, version: int) -> pl.DataFrame:
        """LINEAGE rows of one version of a table and of all that it was made of."""
        return pipelines.upstream(self.frame("lineage"), output, version)


def record_address(root: str, name: str) -> str:
    """The address of `runs`, `expectations` or `lineage` below the output root of pipelines."""
    return f"{root.rstrip('/')}/{FOLDER}/{name}"


def read_records(table: Table, name: str) -> pl.DataFrame:
    """The rows of the table `runs`, `expectations` or `lineage`, with the columns declared for it."""
    schema = TABLES[name]
    there = set(table.schema.names)
    rows = table.scan().select(name for name in schema if name in there).collect()
    return rows.select(
        (pl.col(name) if name in there else pl.lit(None, type_)).cast(type_).alias(name)
        for name, type_ in schema.items()
    )


def inspect_pipelines(root: str, open_table: Callable[[str], Table]) -> PipelineInspection:
    """Returns a PipelineInspection of the output root of pipelines; nothing is read before it is asked.

    `open_table`: returns the table at an address, NotATableError where none is (`lakeview.open_table`).
    """
    return PipelineInspection(root, lambda name, address: read_records(open_table(address), name))
