"""Calls of the reference client to their answers: run in the environment that has it, with three paths as arguments.

`calls.json`: a list of `{"name", "call", "arguments"}`; the profile; a folder, where `answers.json` will hold what came
back by name, and `<name>.arrow` each data answer.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import delta_sharing
import pandas as pd
import pyarrow as pa
import requests


def listing(client: delta_sharing.SharingClient) -> dict[str, Any]:
    """All that the client lists, each level by its own call."""
    shares = client.list_shares()
    schemas = [schema for share in shares for schema in client.list_schemas(share)]
    return {
        "shares": [share.name for share in shares],
        "schemas": [[schema.share, schema.name] for schema in schemas],
        "tables": [[t.share, t.schema, t.name] for schema in schemas for t in client.list_tables(schema)],
        "all_tables": [[t.share, t.schema, t.name] for t in client.list_all_tables()],
    }


def called(profile: str, call: str, arguments: dict[str, Any]) -> Any:
    """What one call gives."""
    if call == "list":
        return listing(delta_sharing.SharingClient(profile))
    table = arguments.pop("table")
    answer = getattr(delta_sharing, call)(f"{profile}#{table}", **arguments)
    if call == "get_table_metadata":
        return {
            "id": answer.id, "schema": json.loads(answer.schema_string), "partition_columns": answer.partition_columns,
        }  # fmt: skip
    if call == "get_table_protocol":
        return {"min_reader_version": answer.min_reader_version}
    return answer


def main() -> None:
    """Make every call, whatever becomes of the others."""
    calls, profile, folder = json.loads(Path(sys.argv[1]).read_text()), sys.argv[2], Path(sys.argv[3])
    answers: dict[str, Any] = {}
    for item in calls:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = called(profile, item["call"], item["arguments"])
        except (requests.HTTPError, ValueError, LookupError, OSError) as error:
            answer = {"error": str(error)}
        if isinstance(answer, pd.DataFrame):
            rows = pa.Table.from_pandas(answer, preserve_index=False)
            with pa.ipc.new_file(folder / f"{item['name']}.arrow", rows.schema) as file:
                file.write_table(rows)
            answer = {"rows": rows.num_rows}
        answers[item["name"]] = answer
    (folder / "answers.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
