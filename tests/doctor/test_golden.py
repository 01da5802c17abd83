"""Tables of other writers: every grave finding on one has been looked at and is true, and no more come."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lakeview.model.errors import LakeviewError
from lakeview.model.findings import Severity
from tests.builders.opening import open_delta_table
from tests.doctor.diagnosis import TROUBLE
from tests.golden.conformance import GoldenTable, delta_tables

TABLES = delta_tables()

NO_SCHEMA = "The table has no schema"

CLAIMS: Mapping[str, tuple[str, ...]] = {
    "canonicalized-paths-special-a--delta": (NO_SCHEMA,),
    "compacted-log-files-table": ("3 log compactions are not reconciled",),
    "corrupted-last-checkpoint": (NO_SCHEMA,),
    "crc-full": ("1 version checksum disagrees with the log",),
    "deltalog-commit-info": (NO_SCHEMA,),
    "deltalog-invalid-protocol-version": ("No specification knows this protocol: reader 99, writer 7",),
    "deltalog-state-reconstruction-from-checkpoint-missing-protocol": (
        "version 10 cannot be rebuilt", "The checkpoint of v10 disagrees with the commits", NO_SCHEMA,
    ),
    "deltalog-state-reconstruction-without-metadata": ("version 0 cannot be rebuilt",),
    "err-logs-table_c": ("The log has a gap: commit 12 is missing",),
    "err-logs-table_i": ("The log has a gap: commits 14 to 9,998 are missing",),
    "identity_test_written_by_version_5": ("1 feature is used and not declared: identityColumns",),
    "v2-classic-checkpoint-json": ("_last_checkpoint names a V2 checkpoint file that is not there",),
}  # fmt: skip
"""Table -> what is wrong with it, beside files that are missing from the store."""

MISSING = " missing from the store"


@pytest.mark.golden
@pytest.mark.skipif(not TABLES, reason="no conformance tables: set LAKEVIEW_CONFORMANCE to their folder")
@pytest.mark.parametrize("golden", TABLES, ids=[t.name for t in TABLES])
def test_nothing_grave_is_said_of_a_golden_table_but_what_is_true(golden: GoldenTable) -> None:
    try:
        table = open_delta_table(golden.path)
    except LakeviewError as error:
        assert golden.expected.error is not None, error  # noqa: PT017 (a table that must open)
        return
    findings = table.check()
    grave = [f for f in findings if f.severity in TROUBLE]
    missing_files = [f for f in grave if MISSING in f.claim]
    assert [f.claim for f in grave if f not in missing_files] == list(CLAIMS.get(golden.name, ())), grave
    latest = golden.expected.latest
    if latest is not None:
        assert bool(missing_files) == bool(latest.missing_files), missing_files
    assert not [f for f in findings if f.claim.startswith("Could not be checked")]
    assert all(f.evidence and f.rule for f in findings if f.severity is not Severity.PASS)
