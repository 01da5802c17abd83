"""The sharing page: what a profile opens, what our server shares and with whom, and what its audit log tells."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import lakeview as lv
from lakeview.app import cache, uploads
from lakeview.app.pages import PAGES
from lakeview.app.sharing import profiles
from lakeview.app.sharing.recipient import ANOTHER, PROFILE, SHARE, TABS, UPLOAD
from lakeview.sharing.server.overview import ShareConfiguration
from lakeview.sharing.server.tokens import TokenFile
from tests.breadth import with_breadth
from tests.builders.shares import SharingServer
from tests.pages import tables
from tests.pages.app import TABLE_PAGES, open_page, text
from tests.server.conftest import RunningServer, listening
from tests.server.shared_lake import build, configuration, write_configuration


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of ours, with an audit log that holds one read of `months` and one table that was refused."""
    folder = tmp_path_factory.mktemp("shared-page")
    build(folder / "lake")
    document = configuration(folder / "lake", audit=str(folder / "audit"))
    with listening(folder, folder / "lake", document) as server:
        lv.open_table(f"{server.profile}#lake.default.months").scan().collect()
        with pytest.raises(lv.errors.NotATableError):
            lv.open_table(f"{server.profile}#other.default.Secret")
        assert server.hub.audit is not None
        server.hub.audit.flush()
        yield server


@pytest.fixture
def configured(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> RunningServer:
    monkeypatch.setenv("LAKEVIEW_SHARE", str(served.profile.parent / "server.yaml"))
    return served


def open_tab(number: int, **parameters: str) -> AppTest:
    return open_page("sharing", tab=TABS[number], **parameters)


def test_without_anything_the_page_says_how_to_begin() -> None:
    app = open_tab(0)
    assert not app.exception
    assert "No profile is open: name the one that you were sent" in text(app)
    assert "by the profile file that you were sent" in text(app)
    assert "lakeview share serve server.yaml" in app.code[0].value
    assert max(map(len, app.code[0].value.splitlines())) < 70, "on a page 900 pixels wide nothing scrolls sideways"
    assert not app.tabs


def test_a_page_that_shares_does_not_say_that_nothing_is_shared(configured: RunningServer) -> None:
    app = open_tab(0)
    assert "No profile is open" in text(app)
    assert "Nothing is shared" not in text(app)


def test_a_profile_is_uploaded(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_tab(0)
    app.file_uploader(key=UPLOAD).upload("ann.share", served.profile.read_bytes(), "text/plain").run()
    assert not app.exception
    name = app.text_input(key=PROFILE).value
    assert name is not None
    assert re.fullmatch(r"uploaded/[\w-]{22}/ann\.share", name), "links hold no folder of the server"
    assert Path(uploads.address(name)).stat().st_mode & 0o777 == 0o600
    assert app.dataframe[0].value["address"][0] == "ann.share#lake.default.months", "as on a machine of its owner"
    overview = open_page("overview", f"{name}#lake.default.months")
    assert {m.label: m.value for m in overview.metric}["Rows"] == "12"
    (facts,) = [dict(zip(*(table.value[column] for column in table.value), strict=True)) for table in overview.table]
    assert facts["location"].replace("\\", "") == "ann.share (uploaded)#lake.default.months"
    app.button(key=ANOTHER).click().run()
    assert not app.text_input(key=PROFILE).value
    app.file_uploader(key=UPLOAD).upload("wrong.share", b"{}", "text/plain").run()
    assert "wrong.share is no profile" in text(app)
    assert ":gray[Where] &ensp; wrong.share" in text(app), "not the file of this server, which is gone"
    monkeypatch.setenv("LAKEVIEW_ROOTS", str(served.profile.parent))
    assert not open_tab(0).get("file_uploader")
    assert "It cannot be uploaded" in text(open_tab(0))
    assert not [button for button in open_tab(0, **{PROFILE: str(served.profile)}).button if button.key == ANOTHER]


@pytest.mark.parametrize(
    ("page", "is_kept", "texts"),
    [
        (
            "health",
            True,
            ("**The profile ann.share (uploaded) expired on 2020-01-01 at", "for a new profile, and upload"),
        ),
        ("health", False, ("**The profile ann.share (uploaded) is not here any more.**", "Upload the profile again")),
        ("sharing", True, ("**The profile ann.share (uploaded) expired on 2020-01-01 at",)),
        ("sharing", False, ("**The profile ann.share (uploaded) is not here any more.**", "Upload the profile again")),
    ],
    ids=["expired, of a table", "removed, of a table", "expired, browsed", "removed, browsed"],
)
def test_an_uploaded_profile_is_named_as_its_owner_knows_it(page: str, is_kept: bool, texts: tuple[str, ...]) -> None:
    document = {"shareCredentialsVersion": 1, "endpoint": "http://localhost:1", "bearerToken": "lvs_x"}
    name = profiles.upload("ann.share", json.dumps(document | {"expirationTime": "2020-01-01T00:00:00Z"}).encode())
    if not is_kept:
        Path(uploads.address(name)).unlink()
    app = open_page(page, **({PROFILE: name} if page == "sharing" else {"table": f"{name}#lake.default.months"}))
    for words in texts:
        assert words.lower() in text(app).lower()
    assert str(uploads.folder()) not in text(app), "the server's own folder"
    assert page == "sharing" or any("Open the Sharing page" in link.proto.label for link in app.get("page_link"))


def test_the_demo_lake_is_shared_by_a_click(no_demo_lake: Path) -> None:
    tables.good(no_demo_lake / "flights")
    app = open_tab(0)
    app.button(key="share-the-demo").click().run()
    assert not app.exception
    assert " shares 1 table with you, in share " in text(app)
    assert app.dataframe[0].value["table"].to_list() == ["flights"]
    table = app.dataframe[0].value["address"][0].partition("#")[2]
    address = uploads.address(f"{app.text_input(key=PROFILE).value}#{table}")
    assert lv.open_table(address).snapshot().num_records == 60


def test_a_profile_is_browsed_and_a_table_opened(served: RunningServer) -> None:
    app = open_tab(0, **{PROFILE: str(served.profile)})
    assert not app.exception
    tables = app.dataframe[0].value
    assert tables["table"].to_list() == ["months", "fed", "vectors", "mapped", "empty", "broken", "odd", "some"]
    assert tables["address"][0] == f"{served.profile}#lake.default.months"
    assert app.selectbox(key=SHARE).options == ["lake"]
    assert served.token not in text(app)
    assert all(served.token not in str(t.value) for t in app.table)


def test_a_share_is_offered_by_its_display_name(tmp_path: Path) -> None:
    server = SharingServer()
    server.answer_with("GET /sharing/shares$", 200, {"items": [{"name": "v", "displayName": "Vaccines"}]}, times=9)
    server.share("v.default.trials", {"id": "long"})
    profile = tmp_path / "team.share"
    profile.write_text(json.dumps(server.profile()))
    app = open_tab(0, **{PROFILE: str(profile)})
    server.close()
    assert app.selectbox(key=SHARE).options == ["Vaccines (v)"]
    assert app.dataframe[0].value["table"].to_list() == ["trials"]


def test_the_address_of_a_shared_table_browses_its_profile(served: RunningServer) -> None:
    app = open_tab(0, **{PROFILE: f"{served.profile}#lake.default.months"})
    assert app.dataframe[0].value["address"][0] == f"{served.profile}#lake.default.months"


def test_a_profile_in_place_of_a_table_offers_its_tables(served: RunningServer) -> None:
    app = open_page("overview", str(served.profile))
    assert "ann.share is a profile with 8 tables**" in text(app)
    assert "in its folders" not in text(app)


def test_a_profile_of_a_later_version_leads_to_no_log(served: RunningServer) -> None:
    later = served.profile.with_name("later.share")
    later.write_text(json.dumps(json.loads(served.profile.read_text()) | {"shareCredentialsVersion": 3}))
    app = open_tab(0, **{PROFILE: str(later)})
    assert "is of version 3; this client knows up to 2" in text(app)
    assert not any("log" in link.proto.label for link in app.get("page_link"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("/nowhere/team.share", "There is no profile at /nowhere/team.share"),
        ("{folder}/server.yaml", "is no profile"),
        ("{folder}/wrong.share", "the bearer token is missing or not known here"),
    ],
)
def test_a_profile_that_does_not_open_says_why(content: str, message: str, served: RunningServer) -> None:
    wrong = served.profile.with_name("wrong.share")
    wrong.write_text(served.profile.read_text().replace(served.token, "lvs_wrong"))
    app = open_tab(0, **{PROFILE: content.format(folder=served.profile.parent)})
    assert not app.exception
    assert message.lower() in text(app).lower()
    assert "lvs_" not in text(app)


@pytest.mark.parametrize("page", ["overview", "data"])
def test_what_is_typed_here_presses_nothing_there(page: str, served: RunningServer) -> None:
    """Widgets of one session share their keys: one called `share` here would press the button of that name there."""
    app = open_tab(0, **{PROFILE: str(served.profile)})
    app.query_params["table"] = f"{served.profile}#lake.default.months"
    app.switch_page(PAGES[page].file).run()
    assert not app.exception
    widgets = {w.key for kind in (app.button, app.selectbox, app.text_input) for w in kind}
    assert not widgets & {PROFILE, SHARE}


def test_what_is_shared_and_with_whom(configured: RunningServer) -> None:
    app = open_tab(1)
    assert not app.exception
    shared = app.dataframe[0].value
    assert shared["table"].to_list()[-1] == "Secret"
    assert [shared[name][0] for name in ("share", "table", "recipients", "history")] == [
        "lake", "months", "ann", "all versions",
    ]  # fmt: skip
    page_text = text(app)
    first = f"{shared.shape[0]} tables in 2 shares are shared with 2 recipients, 1 of them with a valid token"
    assert first in page_text[: page_text.index("Files are shared whole")]
    assert "Min and max of columns are shared" in page_text
    recipients = app.dataframe[1].value
    assert list(recipients["recipient"]) == ["ann", "bob"]
    assert list(recipients["state"]) == ["reads", "no token"]
    assert configured.token not in page_text


def test_a_profile_is_made_by_command_unless_the_page_may_make_tokens(
    configured: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_tab(1)
    assert not app.get("download_button")
    assert "lakeview share token create" in app.code[0].value
    assert app.code[0].value.endswith("server.yaml ann --expires 90d --profile ann.share")
    monkeypatch.setenv("LAKEVIEW_SHARE_TOKENS", "1")
    button = open_tab(1).get("download_button")
    assert [b.proto.label for b in button] == ["Make a token and download ann.share"]


def test_a_new_profile_opens_the_share(served: RunningServer, tmp_path: Path) -> None:
    """What the download gives; the page itself keeps nothing of it."""
    configuration_read = ShareConfiguration.read(str(served.profile.parent / "server.yaml"))
    document = json.loads(configuration_read.new_profile("bob", timedelta(days=30), cache.now))
    assert document["bearerToken"].startswith("lvs_")
    assert document["expirationTime"] > "20"
    bobs = tmp_path / "bob.share"
    bobs.write_text(json.dumps({**document, "endpoint": served.endpoint}))  # the port was given by the system
    assert lv.open_table(f"{bobs}#other.default.Secret").latest_version == 4
    assert served.hub.settings.tokens is not None
    TokenFile(Path(served.hub.settings.tokens), cache.now).revoke("bob")


def test_the_audit_log_is_read_when_somebody_asks(configured: RunningServer) -> None:
    app = open_tab(2)
    assert not app.dataframe
    button = app.button(key="read-audit")
    assert button.label.startswith("Read the audit log: at most 1 file, ")
    button.click().run()
    assert not app.exception
    reads = app.dataframe[0].value
    months = list(reads["table"]).index("lake.default.months")
    assert reads["recipient"][months] == "ann"
    assert reads["file_requests"][months] >= 6
    assert reads["bytes"][months] > 0
    assert re.search(r"1 recipient read \d+ tables? in 30 days; 2 requests refused", text(app))
    assert sum(reads["refused"]) == 2  # the table, and the list of tables that a client asks for then


def test_a_server_without_an_audit_log_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_configuration(tmp_path / "server.yaml", {"version": 1, "colour": "blue"})
    monkeypatch.setenv("LAKEVIEW_SHARE", str(path))
    assert "No audit log is kept" in text(open_tab(2))
    shared = text(open_tab(1))
    assert "Nothing is shared" in shared
    assert "colour is not known here and has no effect" in shared


def test_another_table_in_place_of_the_audit_log_is_told(
    served: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"version": 1, "audit": str(served.lake / "months")}
    monkeypatch.setenv("LAKEVIEW_SHARE", str(write_configuration(tmp_path / "server.yaml", document)))
    app = open_tab(2)
    app.button(key="read-audit").click().run()
    assert "is no audit log of a sharing server: it has no column time" in text(app)


def test_a_configuration_that_is_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEVIEW_SHARE", str(tmp_path / "gone.yaml"))
    assert "There is no configuration file gone.yaml" in text(open_tab(1))


@pytest.mark.parametrize("name", with_breadth(["months", "vectors"], ["mapped", "some"]))  # parquet and delta responses
@pytest.mark.parametrize("page", TABLE_PAGES)
def test_every_page_draws_a_table_of_our_server(page: str, name: str, served: RunningServer) -> None:
    app = open_page(page, f"{served.profile}#lake.default.{name}")
    assert not app.exception
    assert served.token not in text(app)


@pytest.mark.parametrize("page", with_breadth(["overview", "timeline", "data"], TABLE_PAGES))
def test_every_page_says_that_a_shared_table_is_broken(page: str, served: RunningServer) -> None:
    app = open_page(page, f"{served.profile}#lake.default.broken")
    assert not app.exception
    assert "the table is damaged and cannot be read" in text(app).lower()


def test_what_a_share_does_not_tell_is_unknown(served: RunningServer) -> None:
    table = f"{served.profile}#lake.default.months"
    overview = open_page("overview", table)
    figures = {m.label: m.value for m in overview.metric}
    assert (figures["Rows"], figures["Retained bytes"], figures["Last commit"]) == ("12", "unknown", "unknown")
    (retained,) = [m for m in overview.metric if m.label == "Retained bytes"]
    assert retained.proto.delta_description == "", "a note on a figure that is not there"
    assert "last change unknown" in text(overview)
    assert "History costs" not in text(overview)
    health = open_page("health", table)
    assert "The cost of history is unknown" in text(health)
    assert "cleanup ends no version" not in text(health)
    compare = open_page("compare", table)
    assert "Earlier versions than v2 are not known" in text(compare)


@pytest.mark.parametrize(
    ("name", "asks", "plain_readers"),
    [
        pytest.param("months", "parquet responses", "✓ reads", id="plain files"),
        pytest.param("vectors", "delta responses (unknown), deletionVectors", "✕ fails", id="with deletion vectors"),
    ],
)
def test_which_recipients_read_a_shared_table(name: str, asks: str, plain_readers: str, served: RunningServer) -> None:
    app = open_page("health", f"{served.profile}#lake.default.{name}")
    assert not app.exception
    assert f"This version requires: {asks}" in text(app)
    (matrix,) = [f.value for f in app.dataframe if "engine" in f.value.columns]
    verdicts = dict(zip(matrix["engine"], matrix["read"], strict=True))
    assert verdicts["delta-sharing for Python (pandas) 1.4.2"] == "✓ reads"
    assert verdicts["DuckDB (duck_delta_share) 0.1.0"] == plain_readers


def test_two_versions_of_a_share_are_compared(served: RunningServer) -> None:
    app = open_page("compare", f"{served.profile}#lake.default.months", version="2", base="1")
    assert not app.exception
    assert {m.label: m.value for m in app.metric}["Rows"] == "12"
