"""Delete files of a snapshot to findings: those that apply to nothing, and data files with several deletion vectors."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from lakeview.iceberg.deletes.index import applying, is_vector
from lakeview.iceberg.metadata.table_metadata import Metadata
from lakeview.iceberg.spec_finding import spec_finding
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import first_few


def delete_findings(metadata: Metadata, data: pl.DataFrame, deletes: pl.DataFrame) -> Iterator[Finding]:
    """What live delete ENTRIES contradict, given the live data ENTRIES of the snapshot."""
    everywhere = [s.spec_id for s in metadata.specs.values() if s.is_unpartitioned]
    idle = deletes.height - len(applying(data, deletes, everywhere))
    if deletes.height and idle:
        yield spec_finding(
            "delete-files-without-data",
            Severity.NOTE,
            "Delete files apply to no data file any more",
            f"{idle:,} of {deletes.height:,}",
            "Scan Planning",
        )
    targets = deletes.filter(is_vector(deletes))["referenced_data_file"].drop_nulls()
    several = targets.filter(targets.is_duplicated()).unique(maintain_order=True)
    if several.len():
        yield spec_finding(
            "data-file-with-several-deletion-vectors",
            Severity.BROKEN,
            "A data file has several deletion vectors: readers refuse it, or take one of them",
            first_few(several),
            "Deletion Vectors",
        )
