"""The process of a query reads the table's folder and no other, and opens no socket, whatever its query says."""

from __future__ import annotations

import platform
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lakeview.app.query import sandbox
from lakeview.discovery import readable_folders
from lakeview.model.config import Config

LANDLOCK = sys.platform == "linux" and tuple(map(int, platform.release().split("-")[0].split(".")[:2])) >= (5, 13)
needs_landlock = pytest.mark.skipif(not LANDLOCK, reason="Landlock is a feature of Linux from 5.13 on")

ATTEMPTS = {
    "open a file": "open(canary).read()",
    "list a folder": "import os; os.listdir(os.path.dirname(canary))",
    "open a file by a way around": "open(os.path.join(folder, '..', 'canary.csv')).read()",
    "open a file in a thread": "import threading; t = Thread(open, canary)",
    "write into the table": "open(os.path.join(folder, 'x'), 'w')",
    "read_csv": "pl.read_csv(canary)",
    "scan_csv": "pl.scan_csv(canary).collect()",
    "read_parquet": "pl.read_parquet(canary)",
    "read_ndjson": "pl.read_ndjson(canary)",
    "read_ipc": "pl.read_ipc(canary)",
    "SQL that opens a file": "pl.SQLContext().execute(f\"SELECT * FROM read_csv('{canary}')\", eager=True)",
    "a file in a CTE": "pl.SQLContext().execute(f\"WITH r AS (FROM read_csv('{canary}')) FROM r\", eager=True)",
    "an expression that opens a file": "pl.sql_expr(f\"a IN (SELECT zz FROM read_csv('{canary}'))\")",
    "the environment": "open('/proc/self/environ').read()",
    "a file beside a script": "open(os.path.join(os.path.dirname(folder), 'scripts', 'notes.txt')).read()",
    "a ring of requests": "ring()",
    "a socket": "import socket; socket.create_connection(('127.0.0.1', port))",
    "an address": "pl.read_parquet(f'http://127.0.0.1:{port}/x.parquet')",
    "SQL that calls an address": "pl.SQLContext(eager=True).execute(f\"FROM read_parquet('http://127.0.0.1:{port}/x')\")",
    "another program": "import subprocess; raise OSError(subprocess.run(['cat', canary], capture_output=True))",
}  # fmt: skip

REASONS = ("Permission denied", "No CA certificates were loaded")
"""The second: polars reads the system's certificates before it makes a connection, to plain http addresses too."""

PRELUDE = """
import os, sys, threading, pathlib
import polars as pl
folder, canary, port = FOLDER, CANARY, PORT
class Thread:
    def __init__(self, call, *args):
        raised = []
        def run():
            try:
                print(call(*args).read())
            except OSError as error:
                raised.append(error)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if raised:
            raise raised[0]
def ring():
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.syscall(425, 8, ctypes.create_string_buffer(120))
    if made < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
print(open(os.path.join(folder, "own.txt")).read())
print(pl.read_csv(os.path.join(folder, "own.txt"), has_header=False).item())
"""


LOOP = """
for name, attempt in ATTEMPTS.items():
    try:
        exec(attempt)
        found = "it was done"
    except (OSError, pl.exceptions.PolarsError) as error:
        found = str(error)
    print(name, found.replace("\\n", " "), sep="\\t")
"""


@needs_landlock
def test_a_restricted_process_reads_its_folder_alone(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    folder.mkdir()
    (folder / "own.txt").write_text("readable")
    (tmp_path / "canary.csv").write_text("zz\nsecret\n")
    code, scripts = tmp_path / "code", tmp_path / "scripts"
    (code / "some.dist-info").mkdir(parents=True)  # packages were installed there
    scripts.mkdir()
    (scripts / "notes.txt").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        prelude = PRELUDE.replace("FOLDER", repr(str(folder))).replace("CANARY", repr(str(tmp_path / "canary.csv")))
        prelude = prelude.replace("PORT", str(listening.getsockname()[1]))
        (code / "attempt.py").write_text(f"{prelude}\nATTEMPTS = {ATTEMPTS!r}\n{LOOP}")
        command = [sys.executable, "-P", sandbox.__file__, "attempt", str(folder)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": f"{code}:{scripts}", "PATH": "/usr/bin:/bin"},
        )
        with pytest.raises(BlockingIOError):
            listening.accept()
    own, again, *lines = done.stdout.splitlines()
    assert (own, again) == ("readable", "readable"), done.stderr
    assert "secret" not in done.stdout + done.stderr
    outcomes = dict(line.split("\t", 1) for line in lines)
    assert outcomes.keys() == ATTEMPTS.keys(), done.stderr
    assert {name: why for name, why in outcomes.items() if not any(reason in why for reason in REASONS)} == {}


def test_the_folders_that_a_table_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEVIEW_CONFIG", raising=False)
    none, more = Config(), Config(roots=("/lake", "s3://lake"), relocate={"s3://old": "/new", "s3://a": "s3://b"})
    table = str(tmp_path / "t")
    assert readable_folders(table, none) == (table,)
    assert readable_folders(f"file://{table}", none) == (table,)
    assert readable_folders(f"{table}/metadata/v3.metadata.json", none) == (table,)
    assert readable_folders(table, more) == (table, "/lake", "/new")
    for elsewhere in ("s3://lake/t", "catalog://prod/sales.orders", "/etc/team.share#share.schema.table"):
        assert readable_folders(elsewhere, more) == ()
