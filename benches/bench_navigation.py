"""From page to page on the demo table in one session: seconds to the first line and to the whole page, server CPU.

Usage: LAKEVIEW_DEMO=demo-lake PYTHONPATH=. python benches/bench_navigation.py [--tours 5] [--table demo/flights]

A fresh server is visited once (the first line of its first page is the cold figure), then every page by its link in the
sidebar, tour after tour; the first tour fills the server's memory and is left out. The medians of the others are shown.
Goals: 0.7 s of the server's CPU and 0.5 s to the first line of a warm page, 5 s for the first page of a fresh server.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benches.bench_pages import FLAGS, PATIENCE, Server, serving, somebody
from lakeview.app.pages import PAGES

CPU, FIRST_LINE, COLD = 0.7, 0.5, 5.0
_TICKS = os.sysconf("SC_CLK_TCK")

_FIRST_LINE = """title => {
    const main = document.querySelector("[data-testid=stMainBlockContainer]");
    const heading = main?.querySelector("h2");
    if (heading?.innerText.trim() !== title) return false;
    return [...main.querySelectorAll("[data-testid=stMarkdown]")].some(line =>
        heading.compareDocumentPosition(line) & Node.DOCUMENT_POSITION_FOLLOWING
        && !line.closest("[data-stale=true]") && !line.contains(heading) && line.innerText.length > 20
        && line.innerText.trim() !== QUESTION);
}"""
_WHOLE = """() => document.querySelector("[data-testid=stApp]").dataset.testScriptState === "notRunning"
    && !document.querySelector("[data-testid=stSkeleton], [data-stale=true]")
    && [...document.querySelectorAll("[data-testid=stVegaLiteChart]")].every(
        chart => chart.querySelector("canvas, svg.marks"))"""


def cpu_seconds(server: Server) -> float:
    """What the server has computed until now, with the processes of queries that have ended."""
    fields = Path(f"/proc/{server.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def wait_for(tab: Page, page: str, began: float) -> tuple[float, float]:
    """Seconds until the page's first line is there, and until all of it is."""
    question = PAGES[page].question
    script = _FIRST_LINE.replace("QUESTION", repr(question))
    tab.wait_for_function(script, arg=PAGES[page].title, timeout=PATIENCE)
    first = time.perf_counter() - began
    tab.wait_for_function(_WHOLE, timeout=PATIENCE)
    return first, time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tours", type=int, default=5)
    parser.add_argument("--table", default="demo/flights")
    options = parser.parse_args(arguments)
    pages = [name for name, entry in PAGES.items() if entry.of_table]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    samples: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        with serving() as server, somebody(browser) as who:
            tab = who.new_page()
            began = time.perf_counter()
            tab.goto(f"{server.address}/{pages[0]}?table={options.table}")
            first, whole = wait_for(tab, pages[0], began)
            print(
                f"first page of a fresh server: first line after {first:.1f} s, whole after {whole:.1f} s", flush=True
            )
            for _ in range(options.tours + 1):
                for page in [*pages[1:], pages[0]]:
                    tab.wait_for_timeout(1_000)  # what the page before left to do is not this one's
                    before, began = cpu_seconds(server), time.perf_counter()
                    tab.get_by_test_id("stSidebar").get_by_role("link", name=PAGES[page].title, exact=True).click()
                    first, whole = wait_for(tab, page, began)
                    tab.wait_for_timeout(500)
                    samples[page].append((first, whole, cpu_seconds(server) - before))
        browser.close()
    print("| page | first line, s | whole page, s | server CPU, s | reached |\n|---|---|---|---|---|")
    for page in pages:
        first, whole, cpu = (statistics.median(column) for column in zip(*samples[page][1:], strict=True))
        misses = [name for name, over in {"first line": first > FIRST_LINE, "CPU": cpu > CPU}.items() if over]
        print(f"| {page} | {first:.2f} | {whole:.2f} | {cpu:.2f} | {'NO: ' + ', '.join(misses) if misses else 'yes'} |")


if __name__ == "__main__":
    main()
