"""The start page's parts: the ways in, the tour's questions, and the tables opened before."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import columns, errors, row_links, selection, session, tables
from lakeview.app.components import card, escape, frame, grid, link
from lakeview.app.pages import SHARING_PROFILE
from lakeview.app.session import OpenTable
from lakeview.app.start import demo
from lakeview.model import config
from lakeview.model.errors import LakeviewError
from lakeview.views.lake import LakeState

SENTENCE = "See what a lakehouse table went through, and whether you can trust it now."
_ORDER = ("state", "broken", "attention", "late", "bytes", "name")
_GLANCE = pl.Schema(
    {name: views.lake.LAKE[name] for name in _ORDER}
    | dict.fromkeys(("table", "format", "rows", "size", "last", "verdict"), pl.String())
)
"""One row a table: by what it is ordered, as in LAKE, and what is shown."""
_MAX_LISTED = 200
_ICONS = {
    LakeState.UNREADABLE: ":red[:material/error:]",
    LakeState.BROKEN: ":red[:material/error:]",
    LakeState.ATTENTION: ":orange[:material/warning:]",
}
"""The states whose verdicts are shown as lines, in full."""
_MOST_VERDICTS = 5
PROMISE = "Read from the table's own log. Nothing is written, nothing leaves this machine."


def demo_table() -> OpenTable | None:
    """The demo lake's main table, None if the lake has not been built."""
    if all(offer.name != tables.DEMO_TABLE for offer in tables.demo_tables()):
        return None
    return session.look_at(tables.DEMO_TABLE)


def open_commit(key: str) -> None:
    """A click on a mark of the picture opens its commit on the demo table's Timeline."""
    row_links.pick_link(
        key, "timeline", lambda mark: session.link_to(tables.DEMO_TABLE) | {"commit": str(mark["version"])}
    )


def ways_in() -> None:
    """The demo lake, a typed address, and what is shared by a profile."""
    with grid(300):
        with card("Open the demo lake", stretch=True, icon="science"):
            _demo_lake()
        with card("Paste an address", stretch=True, icon="link"):
            st.markdown(
                ":gray[It may be pasted: a folder, an address in a store, or a shared table "
                "(profile.share\\#share.schema.table). The format is detected.]"
            )
            st.text_input(
                "Address",
                key="typed-address",
                placeholder="s3://lake/silver/orders",
                label_visibility="collapsed",
                on_change=_open_typed,
            )
        with card("Open a share", stretch=True, icon="share"):
            _share()
    if st.session_state.pop("_go", None):
        row_links.go("overview", session.link_to(selection.remembered_selection().table or ""))


def _demo_lake() -> None:
    offers = tables.demo_tables()
    if demo.running():
        demo.progress()
    elif offers:
        st.markdown(
            f":gray[{views.units.count_text(len(offers), 'table')} with planted problems: small files, a schema "
            "change, a lost version, a late partition, a bad load. Works offline.]"
        )
        main = next((offer for offer in offers if offer.name == tables.DEMO_TABLE), offers[0])
        if st.button(f"Open {main.label}", type="primary", width="stretch", key="open-demo"):
            row_links.go("overview", session.link_to(main.name))
    elif not tables.is_demo_allowed():
        place = escape(config.settings().demo)
        st.markdown(
            f":gray[Its folder, {place}, lies outside `LAKEVIEW_ROOTS`: add it there, and start the app again.]"
        )
    else:
        st.markdown(
            ":gray[A year of real flights up to yesterday, written by a Spark pipeline, with planted problems. "
            "It is not built yet; that takes about two minutes.]"
        )
        st.button("Build the demo lake", type="primary", width="stretch", key="build-demo", on_click=demo.start)


def _open_typed() -> None:
    if address := tables.strip_typed_name(st.session_state["typed-address"]):
        _open_name(address)


def _open_name(name: str) -> None:
    selection.select(name)
    st.session_state["_go"] = True


def _share() -> None:
    can_upload = not config.settings().roots  # elsewhere no file of this app's own is read
    upload = ", or upload it on the Sharing page" if can_upload else ", below a root of this app"
    st.markdown(f":gray[By the profile file that you were sent: its path or address{upload}.]")
    st.text_input(
        "Profile",
        key="typed-profile",
        placeholder="team.share",
        label_visibility="collapsed",
        on_change=_open_profile,
    )
    if profile := st.session_state.pop("_profile", None):
        row_links.go("sharing", {SHARING_PROFILE: profile})
    link("sharing", "Upload a profile, or share tables" if can_upload else "Share tables")


def _open_profile() -> None:
    st.session_state["_profile"] = tables.strip_typed_name(st.session_state["typed-profile"])


def questions(now: OpenTable) -> None:
    """Five questions, each a link into the demo at the place that answers it."""
    line = now.look.timeline()
    bad = line.filter("suspicious")["version"].to_list()
    entries: list[tuple[str, str, Mapping[str, str]]] = [
        ("Which load went wrong, and who repaired it?", "timeline", {"commit": str(bad[0])} if bad else {}),
        ("Which versions can I still read?", "timeline", {}),
        ("Why is it slow to read?", "files", {}),
        ("What changed in the schema, and when?", "schema", {"tab": "What changed"}),
        ("Is every period complete, and was it on time?", "partitions", {}),
    ]
    with grid(186):
        for number, (question, page, parameters) in enumerate(entries, start=1):
            with card(stretch=True), st.container(height="stretch", vertical_alignment="distribute"):
                st.markdown(f"{number}. {question}")
                link(page, None, {"table": now.name, "version": str(now.version), **parameters})


def recent() -> None:
    """The tables offered or opened before, with what their logs say at a glance."""
    names = {offer.name for offer in tables.demo_tables()} | set(tables.recent())
    # a root may hold thousands: their logs are read when they are opened
    rows = [_at_a_glance(offer) if offer.name in names else _unread(offer) for offer in tables.offers()[:_MAX_LISTED]]
    if rows:
        _table_list(rows)
    roots = config.settings().roots
    if not roots:
        st.markdown(":small[:gray[Start with] `LAKEVIEW_ROOTS=/data/lake` :gray[to see every table below it here.]]")
    elif not tables.root_tables():
        st.markdown(f":small[:gray[No table was found below {escape(', '.join(roots))}.]]")


def _table_list(rows: list[dict[str, Any]]) -> None:
    table = views.lake.worst_first(pl.DataFrame(rows, schema=_GLANCE))
    st.markdown(
        f"**{views.lake.lake_sentence(table)}** &ensp; "
        ":small[:gray[in the demo lake, under a root, or opened in this session]]"
    )
    _verdicts(table.filter(pl.col("state").is_in([state.value for state in _ICONS])))
    frame(
        table,
        {
            "state": columns.mark(charts.lake.SIGNS, help="✕ broken or unreadable, ▲ needs attention, ✓ fine"),
            "table": columns.text("table"),
            "last": columns.text("last commit"),
            "rows": columns.text("rows", right=True),
            "size": columns.text("bytes", right=True, help="of the live files"),
            "format": columns.text("format"),
        },
        key="recent",
        **row_links.row_pick("recent", table["name"].to_list(), _open_name),
    )


def _verdicts(tables: pl.DataFrame) -> None:
    """One line a table that needs attention or cannot be read, the worst first."""
    for name, table, state, verdict in (
        tables.head(_MOST_VERDICTS).select("name", "table", "state", "verdict").iter_rows()
    ):
        with st.container(horizontal=True, vertical_alignment="top", gap="small", wrap=False):
            st.markdown(_ICONS[LakeState(state)], width="content")
            st.markdown(f"**{escape(table)}** &ensp; {escape(verdict)}", width="stretch")
            link("overview", None, session.link_to(name))
    if tables.height > _MOST_VERDICTS:
        st.markdown(f":small[:gray[and {tables.height - _MOST_VERDICTS:,} more, marked in the list]]")


def _unread(offer: tables.Offer) -> dict[str, Any]:
    return {
        "name": offer.name,
        "table": offer.label,
        "format": (offer.format or "").capitalize(),
        "state": LakeState.UNREAD.value,
    }


def _at_a_glance(offer: tables.Offer) -> dict[str, Any]:
    try:
        now = session.look_at(offer.name)
        findings = now.look.findings()
        snapshot = now.snapshot
        rhythm = now.look.cadence()
    except LakeviewError as error:
        return _unread(offer) | {"state": LakeState.UNREADABLE.value, "verdict": errors.public_text(error.message)}
    num_broken, attention = views.health.findings.open_findings(findings)
    return {
        "name": offer.name,
        "broken": num_broken,
        "attention": attention,
        "late": rhythm.late,
        "bytes": snapshot.size_bytes,
        "table": offer.label,
        "format": now.table.format.capitalize(),
        "rows": views.sums.rows_text(snapshot, exact=True),
        "size": views.units.format_bytes(snapshot.size_bytes),
        "last": "none" if rhythm.age is None else f"{views.units.format_age(rhythm.age)} ago",
        "state": views.lake.state_of(findings).value,
        "verdict": views.health.findings.headline(findings),
    }


def opening_note(line: pl.DataFrame) -> str:
    """What the opening picture shows."""
    versions = views.units.count_text(line.height, "version")
    return f"{versions}: every mark is a commit, the band shows which can still be read"
