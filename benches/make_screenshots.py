"""Every page of the demo lake, light and dark, to pictures for the documentation.

Usage: LAKEVIEW_DEMO=/data/demo PYTHONPATH=. python benches/make_screenshots.py

Starts the app, looks at each page in a browser of 1440 pixels and of 900, and writes
`docs/screenshots/<page>-<theme>.png` and `<page>-narrow-<theme>.png` in few colours; `docs/pages.md` shows the first.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator

from PIL import Image
from playwright.sync_api import Browser, expect, sync_playwright

from benches.bench_pages import FLAGS, PATIENCE, ROOT, Server, serving
from lakeview.app.pages import PAGES

TARGET = ROOT / "docs" / "screenshots"
HEIGHT = 1000
WIDE, NARROW = 1440, 900
COLOURS = 256
MOST_BYTES = 4 << 20

SHOWN = {
    "compare": "version=75&base=20",
    "schema": "tab=What+changed&version=70&base=2",
    "pruning": "where=period+%3D+3",
    "quality": "column=dep_delay",
}
"""What a page is asked, where its first sight says little."""


def picture(browser: Browser, server: Server, page: str, theme: str, width: int) -> bytes:
    """One page as a PNG of few colours."""
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    tab = context.new_page()
    query = f"table=demo/flights&{SHOWN.get(page, '')}".rstrip("&")
    tab.goto(f"{server.address}/{'' if PAGES[page].default else page}?{query}")
    tab.locator('[data-testid="stMainBlockContainer"] [data-testid="stMarkdown"]').first.wait_for(timeout=PATIENCE)
    app = tab.locator('[data-testid="stApp"]')
    expect(app).to_have_attribute("data-test-script-state", "notRunning", timeout=PATIENCE)
    expect(tab.locator('[data-testid="stSkeleton"], [data-stale="true"]')).to_have_count(0, timeout=PATIENCE)
    for chart in tab.locator('[data-testid="stVegaLiteChart"]').all():
        expect(chart.locator("canvas, svg.marks").first).to_be_visible(timeout=PATIENCE)
    tab.mouse.move(width - 2, HEIGHT - 2)
    tab.wait_for_timeout(1_000)  # tables draw themselves when they come into sight
    shot = Image.open(io.BytesIO(tab.screenshot()))
    context.close()
    small = io.BytesIO()
    few = shot.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    few.save(small, "PNG", optimize=True)
    return small.getvalue()


def pictures(browser: Browser, server: Server) -> Iterator[tuple[str, bytes]]:
    """Names of files, and what goes into them."""
    for page in PAGES:
        for theme in ("light", "dark"):
            yield f"{page}-{theme}.png", picture(browser, server, page, theme, WIDE)
            yield f"{page}-narrow-{theme}.png", picture(browser, server, page, theme, NARROW)


def main() -> None:
    """Makes all of them; SystemExit if they take more than the repository should hold."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    total = 0
    with serving() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name, content in pictures(browser, server):
            (TARGET / name).write_bytes(content)
            total += len(content)
            print(f"{name}: {len(content):,} bytes")
        browser.close()
    if total > MOST_BYTES:
        raise SystemExit(f"the pictures take {total:,} bytes, {MOST_BYTES:,} are allowed: use fewer colours")


if __name__ == "__main__":
    main()
