"""Every page in a real browser on huge tables: seconds cold and warm, marks, rows, requests and the server's memory.

Usage: python benches/bench_pages.py [--files 1000000] [--iceberg 1000000] [--commits 20000] [--pages overview ...]
                                     [--sessions 8] [--folders] [--output X]

Cold is the first visit of a fresh server by a browser that was never there; warm the second one, a new session in a
new tab of that browser, which has the app's scripts by then; `other` one more by a browser that was never there. Goals:
10 s cold and 3 s warm on 2 cores, at most 5,000 marks and 1,000 rows on a page, the server below 2 GB. At the end many
sessions open two tables at once.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from benches.make_iceberg import iceberg_files
from benches.make_tables import commits_table, files_table
from lakeview import open_table
from lakeview.app.pages import PAGES

ROOT = Path(__file__).resolve().parents[1]
COLD, WARM = 10.0, 3.0
MARKS, ROWS = 5_000, 1_000
MEMORY = 2 * 10**9
PATIENCE = 180_000
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

_DRAWN = """() => ({
    marks: [...document.querySelectorAll('svg.marks')].map(
        chart => chart.querySelectorAll('g.role-mark > path, g.role-mark > text, g.role-mark > line, '
            + 'g.role-mark > rect, g.role-mark > image').length),
    rows: [...document.querySelectorAll('[data-testid=stDataFrame] [role=grid]')].map(
        grid => Number(grid.getAttribute('aria-rowcount') || 1) - 1),
})"""

HEADER = (
    "| table | page | cold, s | warm, s | other, s | marks | rows | requests cold | requests warm "
    "| memory, MB | reached |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Server:
    """One fresh server: its address, its process and where it tells its requests."""

    address: str
    pid: int
    counts: Path

    def requests(self) -> int:
        """Calls to stores up to now, about half a second ago."""
        time.sleep(1)
        return sum(json.loads(self.counts.read_text()).values()) if self.counts.exists() else 0

    def memory(self) -> int:
        """The most bytes it held at any time."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        peak = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
        return int(peak[1]) * 1024 if peak else 0


@dataclass(frozen=True)
class Visit:
    """What one visit saw: seconds until the page was whole; marks and rows of the largest picture and table."""

    seconds: float
    marks: int
    rows: int


@contextmanager
def serving() -> Iterator[Server]:
    """A fresh server, ready for its first visit."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = Path(tempfile.mkdtemp())
    command = [sys.executable, "-m", "benches.pages_server", str(port), str(folder / "counts")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(120):
            with suppress(OSError), urllib.request.urlopen(f"{address}/_stcore/script-health-check", timeout=60):
                break
            time.sleep(0.5)
        else:
            raise SystemExit("the app did not start")
        yield Server(address, process.pid, folder / "counts")
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder)


def somebody(browser: Browser) -> BrowserContext:
    """A browser that was never there."""
    return browser.new_context(viewport={"width": 1440, "height": 1000}, reduced_motion="reduce")


def visit(who: BrowserContext, server: Server, page: str, address: Path | str) -> Visit:
    """Opens a page in a new tab, a session of its own, and waits until all of it is drawn."""
    tab = who.new_page()
    began = time.perf_counter()
    tab.goto(f"{server.address}/{page}?table={address}")
    tab.locator('[data-testid="stMainBlockContainer"] [data-testid="stMarkdown"]').first.wait_for(timeout=PATIENCE)
    app = tab.locator('[data-testid="stApp"]')
    expect(app).to_have_attribute("data-test-script-state", "notRunning", timeout=PATIENCE)
    expect(tab.locator('[data-testid="stSkeleton"], [data-stale="true"]')).to_have_count(0, timeout=PATIENCE)
    for chart in tab.locator('[data-testid="stVegaLiteChart"]').all():
        expect(chart.locator("canvas, svg.marks").first).to_be_visible(timeout=PATIENCE)
    for table in tab.locator('[data-testid="stDataFrame"]:visible').all():
        expect(table.locator("[role=grid]").first).to_be_attached(timeout=PATIENCE)
    seconds = time.perf_counter() - began
    if tab.locator('[data-testid="stException"]').count():
        raise SystemExit(f"{page} of {address} failed")
    counts = tab.evaluate(_DRAWN)
    tab.close()
    return Visit(seconds, sum(counts["marks"]), max(counts["rows"], default=0))


def measured(browser: Browser, page: str, table: Path) -> str:
    """One line of the report: a page of a table, on a fresh server."""
    with serving() as server, somebody(browser) as first, somebody(browser) as second:
        before = server.requests()
        cold = visit(first, server, page, table)
        requests = server.requests()
        warm = visit(first, server, page, table)
        again = server.requests()
        other = visit(second, server, page, table)
        memory = server.memory()
    marks, rows = max(cold.marks, warm.marks), max(cold.rows, warm.rows)
    misses = [
        name
        for name, over in {
            "cold": cold.seconds > COLD,
            "warm": warm.seconds > WARM,
            "marks": marks > MARKS,
            "rows": rows > ROWS,
            "memory": memory > MEMORY,
        }.items()
        if over
    ]
    cells = [f"{each.seconds:.1f}" for each in (cold, warm, other)]
    cells += [f"{count:,}" for count in (marks, rows, requests - before, again - requests)]
    cells += [f"{memory / 1e6:,.0f}", f"NO: {', '.join(misses)}" if misses else "yes"]
    return f"| {table.name} | {page} | {' | '.join(cells)} |"


def together(chromium: str | None, sessions: int) -> str:
    """One line: so many sessions open two tables, one after the other and then all at once, each time a fresh server.

    All share the machine with their browsers: what nobody waits for takes no longer at once than one after the other.
    """
    tables = [commits_table(1_000, checkpoints=True).path, files_table(10_000).path]

    def one(server: Server, number: int) -> float:
        with sync_playwright() as playwright:  # its objects belong to one thread
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            page = list(PAGES)[1 + number % 4]
            seconds = visit(somebody(browser), server, page, tables[number % len(tables)]).seconds
            browser.close()
            return seconds

    took, times, memory = list[float](), list[float](), 0
    for workers in (1, sessions):
        with serving() as server, ThreadPoolExecutor(workers) as pool:
            began = time.perf_counter()
            times = sorted(pool.map(lambda number: one(server, number), range(sessions)))
            took.append(time.perf_counter() - began)
            memory = server.memory()
    return (
        f"{sessions} sessions on {len(tables)} tables, with the start of their browsers: one after the other "
        f"{took[0]:.1f} s, at once {took[1]:.1f} s (first page after {times[0]:.1f} s, last {times[-1]:.1f} s), "
        f"server {memory / 1e6:,.0f} MB"
    )


def fill(table: Path) -> None:
    """Makes every data file that a table names, with nothing in it: they stay, and are listed from then on."""
    paths = [table / path for path in open_table(table).snapshot().files["path"]]
    for folder in {path.parent for path in paths}:
        folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        path.touch()


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the report as it grows, and keeps it in a file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--iceberg", type=int, nargs="*", default=[1_000_000], help="files of an Iceberg table")
    parser.add_argument("--commits", type=int, nargs="*", default=[20_000])
    parser.add_argument("--pages", nargs="*", default=[name for name, entry in PAGES.items() if entry.of_table])
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--folders", action="store_true", help="make the data files too, empty: folders are listed")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    tables = [files_table(count).path for count in options.files]
    tables += [iceberg_files(count).path for count in options.iceberg]
    tables += [commits_table(count, checkpoints=True).path for count in options.commits]
    if options.folders:
        for table in tables:
            fill(table)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    lines = [HEADER]
    print(HEADER, flush=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        with somebody(browser) as nobody:  # that the browser itself has to start is not the first page's cost
            nobody.new_page().goto("about:blank")
        for table in tables:
            for page in options.pages:
                lines.append(measured(browser, page, table))
                print(lines[-1], flush=True)
        browser.close()
    if options.sessions:
        lines += ["", together(chromium, options.sessions)]
        print(lines[-1])
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
