"""Metrics that count the files of a change data feed, as delta-rs does: no trouble, and no cover for one."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa

from lakeview.model.findings import Severity
from tests.builders.actions import cdc, info
from tests.builders.history import DeltaHistory
from tests.builders.opening import open_delta_table
from tests.doctor.diagnosis import diagnosis, rows, sound


def test_what_deltalake_writes_with_a_feed_gets_nothing_but_passes(tmp_path: Path) -> None:
    fed = {"delta.enableChangeDataFeed": "true"}
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}), configuration=fed)
    table = deltalake.DeltaTable(tmp_path / "t")
    table.update(updates={"v": "'z'"}, predicate="id = 1")
    table.delete("id = 2")
    source = pa.table({"id": [3, 4], "v": ["m", "i"]})
    merge = table.merge(source, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    findings = open_delta_table(str(tmp_path / "t")).check()
    assert [f for f in findings if f.severity is not Severity.PASS] == []


def test_more_than_files_and_change_files_is_a_trouble(history: DeltaHistory) -> None:
    added, changes = rows(history, "c.parquet"), rows(history, "_change_data/c.parquet")
    sound(history).commit(info(operation="UPDATE", operationMetrics={"num_added_files": 3}), added, cdc(changes))
    findings = [f for f in diagnosis(history) if "metrics" in f.claim]
    assert [f.severity for f in findings] == [Severity.ATTENTION]
    assert "num_added_files 3, not 1" in findings[0].evidence
