"""The first visit: the demo lake that is there, or not yet; a typed address; the tables below the roots."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lakeview.app.start import demo
from lakeview.app.tables import Offer, distinguish, label
from tests.pages import tables
from tests.pages.app import open_page, text


def test_the_first_visit_offers_to_build_the_demo_lake() -> None:
    app = open_page("start")
    assert not app.exception
    assert "whether you can trust it now" in text(app)
    assert app.button(key="build-demo").label == "Build the demo lake"
    headings = {"science": "Open the demo lake", "link": "Paste an address", "share": "Open a share"}
    assert [f"**:material/{icon}: {heading}**" in text(app) for icon, heading in headings.items()] == [True] * 3


@pytest.mark.parametrize(
    ("line", "share"),
    [
        ("[  0.0 s] starting Spark", 0.0),
        ("[ 94.2 s] 13/52 daily_delays: up to date", 0.25),
        ("[196.4 s] 87/87 daily_delays: up to date", 1.0),
    ],
)
def test_the_steps_of_a_build_are_counted(line: str, share: float) -> None:
    assert demo.done_share(line) == share


def build_demo(app: AppTest) -> AppTest:
    """The page after the build it started has ended."""
    app.button(key="build-demo").click().run()
    build = demo.site().build
    if build is not None:  # it may have ended while the page was drawn
        build.wait()
    return app.run()


def test_a_build_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "print('no Java of a supported version'); raise SystemExit(1)"
    monkeypatch.setattr(demo, "COMMAND", (sys.executable, "-c", program))
    app = build_demo(open_page("start"))
    assert not app.exception
    assert app.status[0].label == "The build failed"
    assert "no Java of a supported version" in app.code[0].value


@pytest.mark.usefixtures("fresh_server")
def test_a_build_that_succeeds_shows_the_lake(no_demo_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(no_demo_lake / "flights")
    program = f"from pathlib import Path; from tests.pages import tables; tables.good(Path({place!r}))"
    monkeypatch.setattr(demo, "COMMAND", (sys.executable, "-c", program))
    app = build_demo(open_page("start"))
    assert not app.exception
    assert app.button(key="open-demo").label == "Open demo / flights"


@pytest.fixture
def lake(no_demo_lake: Path) -> Path:
    """A demo lake with a table of the right name."""
    tables.good(no_demo_lake / "flights")
    tables.unsupported(no_demo_lake / "broken")
    return no_demo_lake


def test_the_demo_lake_is_shown_with_its_life_and_five_questions(lake: Path) -> None:
    app = open_page("start")
    assert not app.exception
    assert "7 versions: every mark is a commit" in text(app)
    assert "Which versions can I still read?" in text(app)


def test_tables_are_listed_with_their_verdict_even_if_one_is_broken(lake: Path) -> None:
    app = open_page("start")
    tables_by_name = app.dataframe[0].value.set_index("table")
    assert tables_by_name.loc["demo / flights", "rows"] == "60"
    assert "**2 tables: 1 unreadable, " in text(app)
    (line,) = [line for line in text(app).splitlines() if line.startswith("**demo / broken**")]
    assert "timeTurner" in line


@pytest.mark.usefixtures("fresh_server")
def test_the_button_opens_the_demo(lake: Path) -> None:
    app = open_page("start")
    app.button(key="open-demo").click().run()
    assert not app.exception
    assert app.query_params["table"] == "demo/flights"


def test_a_page_without_a_link_shows_the_demo(lake: Path) -> None:
    app = open_page("files")
    assert app.query_params["table"] == "demo/flights"


def test_tables_below_a_root_are_offered(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEVIEW_ROOTS", str(good.parent))
    app = open_page("start")
    assert app.dataframe[0].value["table"].to_list() == [label(str(good))]
    assert "lies outside `LAKEVIEW_ROOTS`" in text(app)  # nor is a demo lake built that could not be opened
    assert "build-demo" not in [button.key for button in app.button]


def test_a_profile_typed_opens_the_sharing_page(tmp_path: Path) -> None:
    app = open_page("start")
    app.text_input(key="typed-profile").set_value(f"  '{tmp_path}/team.share' ").run()
    assert not app.exception
    assert f"There is no profile at {tmp_path}/team.share".lower() in text(app).lower()


def test_an_empty_root_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEVIEW_ROOTS", str(tmp_path))
    app = open_page("start")
    assert not app.exception
    assert f"No table was found below {tmp_path}" in text(app)


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["/lake/orders", "/lake/trips"], ["lake / orders", "lake / trips"]),
        (["s3://lake/orders", "/lake/orders"], ["s3://lake / orders", "lake / orders"]),
        (["/a/lake/orders", "/b/lake/orders", "/c/trips"], ["a / lake / orders", "b / lake / orders", "c / trips"]),
        (["demo/flights", "/srv/demo/flights"], ["demo / flights", "srv / demo / flights"]),
        (["orders", "orders"], ["orders", "orders"]),
        (
            ["/a/team.share#lake.silver.orders", "/a/team.share#lake.silver.trips"],
            ["silver / orders", "silver / trips"],
        ),
        (
            ["/team.share#lake.silver.orders", "/desk.share#lake.silver.orders"],
            ["team.share / lake / silver / orders", "desk.share / lake / silver / orders"],
        ),
        (["/lake/a b#c?d.e"], ["lake / a b#c?d.e"]),
    ],
)
def test_tables_of_one_label_are_distinguished(names: list[str], labels: list[str]) -> None:
    assert [offer.label for offer in distinguish([Offer(name, name, label(name)) for name in names])] == labels
