"""What one commit of a published table says of itself, and what of it goes to the tables of records."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from lakeview.spark.pipelines.records import Row


class Read(msgspec.Struct, frozen=True):
    """An input of a publication: what the commits `first` to `last` of a table added, or with `first` None all rows of
    version `last`; of what has no versions both are None. `commit`: the digest of the commit `last` of a sink, which
    another version of its number does not have."""

    address: str
    first: int | None = None
    last: int | None = None
    commit: str | None = None


class Result(msgspec.Struct, frozen=True):
    """The outcome of one expectation: how many rows failed it, and a few of them as JSON texts, long ones left out."""

    name: str
    action: str
    condition: str
    rows_failed: int
    sample: tuple[str, ...] = ()


class Publication(msgspec.Struct, frozen=True):
    """userMetadata of a commit that published rows: all that the records need, so that they can be written from the log
    alone if the run ended between the two."""

    pipeline: str
    run_id: str
    dataset: str
    started: datetime
    inputs: tuple[Read, ...]
    rows_in: int
    rows_out: int
    rows_dropped: int
    rows_quarantined: int
    results: tuple[Result, ...] = ()
    quarantine: str | None = None
    quarantine_version: int | None = None

    def user_metadata(self) -> str:
        """As text of a commit."""
        return msgspec.json.encode(_Envelope(self)).decode()

    def summary(self) -> str:
        """What became of the rows, and which expectations some of them fail, in a line."""
        kinds = ((self.rows_dropped, "dropped"), (self.rows_quarantined, "quarantined"))
        counts = [f"{self.rows_in:,} rows in", f"{self.rows_out:,} out", *(f"{n:,} {what}" for n, what in kinds if n)]
        failures = [f"{r.name} {r.rows_failed:,} ({r.action})" for r in self.results if r.rows_failed]
        return ", ".join(counts) + ("; rows that fail: " + ", ".join(failures) if failures else "")


class _Envelope(msgspec.Struct):
    """Names whose metadata it is: other writers of the table have theirs."""

    lakeview_publication: Publication


def publication_in(user_metadata: str | None, pipeline: str, dataset: str) -> Publication | None:
    """The publication of a dataset that a commit records; None for one of anything else."""
    try:
        publication = msgspec.json.decode(user_metadata or "", type=_Envelope).lakeview_publication
    except msgspec.DecodeError:  # text of another writer
        return None
    return publication if (publication.pipeline, publication.dataset) == (pipeline, dataset) else None


def records_of(done: Publication, output: str, version: int, timestamp: datetime) -> Mapping[str, Sequence[Row]]:
    """Rows of the three tables for a publication that is version `version` of `output`."""
    step: Row = {"run_id": done.run_id, "dataset": done.dataset, "step": "publish"}
    outputs: list[tuple[str, int | None]] = [(output, version)]
    if done.quarantine is not None:
        outputs.append((done.quarantine, done.quarantine_version))
    lineage = [
        step
        | {"input": source.address, "input_from": source.first, "input_version": source.last}
        | {"output": address, "output_version": number, "timestamp": timestamp}
        for address, number in outputs
        for source in done.inputs
    ]
    run = step | {"status": "succeeded", "started": done.started, "ended": timestamp}
    run |= {"output": output, "version": version} | {name: getattr(done, name) for name in _COUNTS}
    return {"expectations": expectation_rows(done, output, version, timestamp), "lineage": lineage, "runs": [run]}


def expectation_rows(done: Publication, output: str, version: int | None, at: datetime) -> list[Row]:
    """Rows of the table of expectations; `version` None for rows that were refused."""
    rows = []
    for result in done.results:
        in_quarantine = result.action == "quarantine" and result.rows_failed > 0
        rows.append(
            {
                "run_id": done.run_id,
                "dataset": done.dataset,
                "expectation": result.name,
                "action": result.action,
                "condition": result.condition,
                "rows_checked": done.rows_in,
                "rows_failed": result.rows_failed,
                "sample": f"[{','.join(result.sample)}]" if result.sample else None,
                "output": output,
                "version": version,
                "quarantine": done.quarantine if in_quarantine else None,
                "quarantine_version": done.quarantine_version if in_quarantine else None,
                "timestamp": at,
            }
        )
    return rows


_COUNTS = ("rows_in", "rows_out", "rows_dropped", "rows_quarantined")
