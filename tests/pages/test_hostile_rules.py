"""A table whose log holds hostile SQL: constraints, invariants, generated columns and defaults that open files and call
addresses. Every page and command, the library and the server read nothing of it and make no connection."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

import lakeview as lv
from lakeview import views
from lakeview.app.lake import survey
from lakeview.cli import main
from tests.builders.actions import info, metadata, protocol
from tests.builders.history import DeltaHistory
from tests.pages.app import TABLE_PAGES, open_page, text
from tests.server.conftest import Clock, hub_of
from tests.server.shared_lake import configuration

SECRET = "a-secret-of-the-server"

EXPRESSIONS = (
    "a IN (SELECT zz FROM read_csv('CANARY'))",
    "a IN (SELECT zz FROM READ_CSV('CANARY'))",
    "EXISTS (SELECT 1 FROM read_parquet('CANARY'))",
    "EXISTS (FROM read_json('CANARY'))",
    "a = (SELECT MAX(zz) FROM read_ndjson('CANARY'))",
    "a = ANY (SELECT zz FROM read_ipc('CANARY'))",
    "a > ALL (SELECT zz FROM scan_csv('CANARY'))",
    "(SELECT COUNT(*) FROM 'CANARY') > 0",
    '(SELECT COUNT(*) FROM "CANARY") > 0',
    "(SELECT COUNT(*) FROM `CANARY`) > 0",
    "a IN (SELECT zz FROM csv.`CANARY`)",
    "a IN (SELECT zz FROM read_csv('http://127.0.0.1:PORT/x.csv'))",
    "EXISTS (SELECT 1 FROM read_parquet('http://127.0.0.1:PORT/x.parquet'))",
    "a IN (WITH r AS (SELECT * FROM read_csv('CANARY')) SELECT zz FROM r)",
    "a IN (SELECT zz FROM t, LATERAL read_csv('CANARY'))",
    "a IN (SELECT 1 UNION SELECT zz FROM read_csv('CANARY'))",
    "CASE WHEN a > 0 THEN (SELECT zz FROM read_csv('CANARY')) END = 1",
    "CAST((SELECT zz FROM read_csv('CANARY')) AS BIGINT) = 1",
    "COALESCE(a, (SELECT zz FROM read_csv('CANARY'))) = 1",
    "NOT (a IN (SELECT zz FROM read_csv('CANARY')))",
    "a > 0 AND a IN (SELECT zz FROM read_csv('CANARY'))",
    "read_csv('CANARY') = 'x'",
    "reflect('java.lang.System', 'getenv', 'HOME') = 'x'",
    "java_method('java.lang.Runtime', 'exec', 'touch CANARY') = 'x'",
    "read_files('CANARY') IS NOT NULL",
    "http_get('http://127.0.0.1:PORT/x') = 'x'",
    "a IN (TABLE read_csv('CANARY'))",
    "a IN (VALUES (1), (2))",
    "unnest(read_csv('CANARY')) = 1",
    "lpad('x', 10000000000, 'y') = 'x'",
    "(" * 5_000,
    "a = 1; DROP TABLE t",
)


@dataclass
class Trap:
    """A table with those texts in its log; a file that must not be opened, and an address that must not be called."""

    root: Path
    address: str
    canary: Path
    opened: int
    listening: socket.socket

    def check(self, output: str) -> None:
        """Fails if the file was opened, the address called, or the file's content is in the output."""
        assert SECRET not in output
        with pytest.raises(BlockingIOError):
            self.listening.accept()
        with pytest.raises(BlockingIOError):
            os.read(self.opened, 4096)


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trap]:
    if sys.platform != "linux":
        pytest.skip("who opens a file is known by inotify, which is a feature of Linux")
    root = tmp_path_factory.mktemp("hostile")
    canary = root / "canary.csv"
    canary.write_text(f"zz\n{SECRET}\n")
    libc = ctypes.CDLL(None, use_errno=True)
    opened = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(opened, os.fsencode(canary), 0x20 | 0x1) > 0  # IN_OPEN, IN_ACCESS
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        texts = [e.replace("CANARY", str(canary)).replace("PORT", str(listening.getsockname()[1])) for e in EXPRESSIONS]
        yield Trap(root, hostile(root / "lake" / "table", texts), canary, opened, listening)
    os.close(opened)


def hostile(root: Path, texts: list[str]) -> str:
    """A table of three versions in whose metadata the texts stand wherever SQL may stand."""
    fields = [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]
    for i, expression in enumerate(texts):
        invariant = json.dumps({"expression": {"expression": expression}})
        kinds = ({"delta.invariants": invariant}, {"delta.generationExpression": expression},
                 {"CURRENT_DEFAULT": expression, "EXISTS_DEFAULT": expression})  # fmt: skip
        fields.append({"name": f"c{i}", "type": "long", "nullable": True, "metadata": kinds[i % 3]})
    history = DeltaHistory(root)
    properties: dict[str, str | None] = {f"delta.constraints.r{i}": e for i, e in enumerate(texts)}
    history.commit(
        protocol(1, 4), metadata(schema=json.dumps({"type": "struct", "fields": fields}), properties=properties)
    )
    for i in range(2):
        rows = {"a": [1, 2], **{f"c{n}": [n, n] for n in range(len(texts))}}
        stats = {"numRecords": 2, "minValues": {"a": 1}, "maxValues": {"a": 2}, "nullCount": {"a": 0}}
        history.commit(info(operation="WRITE"), history.data(f"f{i}.parquet", rows, stats=stats))
    return history.address


def test_the_trap_springs(tmp_path: Path, trap: Trap) -> None:
    """A file that is opened and an address that is called are seen."""
    with pytest.raises(AssertionError):
        trap.check(SECRET)
    trap.canary.read_text()
    assert os.read(trap.opened, 4096)
    with socket.create_connection(trap.listening.getsockname()):
        trap.listening.accept()[0].close()


@pytest.mark.parametrize("page", TABLE_PAGES)
def test_pages(page: str, trap: Trap) -> None:
    app = open_page(page, trap.address)
    assert not app.exception
    trap.check(text(app) + "".join(str(frame.value) for frame in app.dataframe))


def test_the_lake_page(trap: Trap) -> None:
    root = str(trap.root / "lake")
    app = open_page("lake", root=root)
    assert survey.table_survey(root, 200).done.wait(30)
    app.run()
    assert not app.exception
    trap.check(text(app) + "".join(str(frame.value) for frame in app.dataframe))


def test_each_is_shown_as_not_evaluated(trap: Trap) -> None:
    snapshot = lv.open_table(trap.address).snapshot()
    rules = views.quality.constraints.stated_rules(snapshot)
    verdicts = views.quality.verdicts.constraint_verdicts(
        snapshot, rules, lv.open_table(trap.address).statistics(columns=["a"])
    ).rules
    assert set(verdicts["verdict"]) == {"unknown"}
    assert verdicts.height > len(EXPRESSIONS) + 10
    assert [why for why in verdicts["why"] if not why.startswith("not evaluated: ")] == []
    trap.check(str(verdicts.rows()))


def test_the_library_and_the_doctor(trap: Trap) -> None:
    table = lv.open_table(trap.address)
    answers = [table.check(), table.plan("a > 1"), table.scan().collect(), table.statistics(), table.schemas()]
    answers += [table.snapshot().rules, table.changes(1).collect(), table.history(), table._repr_html_()]
    trap.check(str(answers))


@pytest.mark.parametrize("command", ["check", "health", "show", "history", "files", "versions", "schema"])
def test_the_command_line(command: str, trap: Trap) -> None:
    for more in ((), ("--json",)):
        done = CliRunner().invoke(main, [command, trap.address, *more])
        assert done.exception is None or isinstance(done.exception, SystemExit)
        trap.check(done.output)


def test_the_sharing_server(trap: Trap, tmp_path: Path) -> None:
    from starlette.testclient import TestClient  # it warns when it is imported; tests/server/conftest.py says of what

    from lakeview.sharing.server.app import application

    document = configuration(trap.root / "lake")
    schema = document["shares"][0]["schemas"][0]
    schema["tables"].append({"name": "hostile", "location": trap.address, "id": "hostile", "historyShared": True})
    clock = Clock()
    hub = hub_of(tmp_path, document, clock)
    base = f"/delta-sharing/shares/{document['shares'][0]['name']}/schemas/{schema['name']}/tables/hostile"
    with TestClient(application(hub), base_url="http://127.0.0.1:8080") as client:
        from lakeview.sharing.server.tokens import TokenFile

        assert hub.settings.tokens is not None
        token = TokenFile(Path(hub.settings.tokens), clock).create("ann", None)[0]
        headers = {"Authorization": f"Bearer {token}", "delta-sharing-capabilities": "responseformat=delta"}
        hint = f"a IN (SELECT zz FROM read_csv('{trap.canary}'))"
        answers = [
            client.get(f"{base}/version", headers=headers),
            client.get(f"{base}/metadata", headers=headers),
            client.post(f"{base}/query", headers=headers, json={"predicateHints": [hint]}),
            client.post(f"{base}/query", headers=headers, json={"startingVersion": 0}),
            client.get(f"{base}/changes?startingVersion=0", headers=headers),
        ]
    assert [answer.status_code for answer in answers[:4]] == [200, 200, 200, 200]
    assert answers[4].status_code == 400
    trap.check("".join(answer.text for answer in answers))
