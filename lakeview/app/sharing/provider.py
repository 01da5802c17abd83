"""The sharing page's parts, as the one who shares: what is given to whom, new profiles, and what was read."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import lakeview as lv
from lakeview import charts, views
from lakeview.app import cache, columns, downloads
from lakeview.app.cache import cache_values
from lakeview.app.components import (
    card,
    dark,
    escape,
    finding_lines,
    first_line,
    frame,
    grid,
    link,
    nothing,
    stack,
    tile,
)
from lakeview.app.sharing import profiles
from lakeview.app.sharing.recipient import PROFILE, choose
from lakeview.app.tables import demo_tables
from lakeview.app.widths import HALF
from lakeview.model import config
from lakeview.model.errors import InvalidRequestError
from lakeview.model.findings import Finding, Severity
from lakeview.sharing.server import require_extra

if TYPE_CHECKING:
    from lakeview.sharing.server.overview import ShareConfiguration

_LIVES: dict[str, timedelta | None] = {
    "30 days": timedelta(days=30),
    "90 days": timedelta(days=90),
    "1 year": timedelta(days=365),
    "no end": None,
}
_DAYS = {"7 days": 7, "30 days": 30, "1 year": 365}
_MOST_LIVE = 2
_TABLE = 150
"""Pixels of `share.schema.table`, which is not cut."""
_READ = "_audit-read"

_HOW = """# every table below a folder
lakeview share serve lake --profile me.share
# shares, recipients, an audit log
lakeview share serve server.yaml
# what is shared, and who read what, on this page
LAKEVIEW_SHARE=server.yaml lakeview app"""

WHOLE_FILES = Finding(
    "files-shared-whole",
    Severity.ATTENTION,
    "Files are shared whole",
    "with every row and column in them; a recipient's filter skips files and hides nothing",
    remedy="share a view where a part is to stay here: what it hides is not in its files",
    rule="Delta Sharing protocol",
)
BOUNDS = Finding(
    "bounds-shared",
    Severity.ATTENTION,
    "Min and max of columns are shared",
    "beside each file, so values can be learnt without reading a row",
    remedy="leave statistics of sensitive columns out of the log (delta.dataSkippingStatsColumns), or share a view",
    rule="Delta Sharing protocol, stats",
)


def is_configured() -> bool:
    """Whether LAKEVIEW_SHARE names the configuration of a server."""
    return bool(config.settings().share)


def server() -> ShareConfiguration:
    """The configured server.

    MissingExtraError without the extra `server`, InvalidRequestError for a configuration that is none.
    """
    require_extra()
    from lakeview.sharing.server.overview import ShareConfiguration

    return ShareConfiguration.read(config.settings().share)


def set_up() -> None:
    """How to share tables, and the demo lake shared on this machine to try it."""
    with card("Share tables of your own", "with any client of Delta Sharing", key="share-set-up"):
        st.code(_HOW, language=None)
    if demo_tables() and profiles.can_be_written():
        with card("Try it with the demo lake", "served to this machine alone, until this app ends", key="share-demo"):
            st.button("Share the demo lake", icon=":material/share:", key="share-the-demo", on_click=_share_demo)


def _share_demo() -> None:
    with st.spinner("Starting a sharing server"):
        st.session_state[PROFILE] = profiles.demo_share(config.settings().demo)


# -- what is shared


def shares(configuration: ShareConfiguration, answer: DeltaGenerator) -> None:
    """Figures, warnings, tables, recipients and their tokens; what is shared with whom goes to `answer`."""
    shared_tables, recipients, tokens = (
        configuration.shared_tables(),
        configuration.recipients(cache.now),
        configuration.tokens(cache.now),
    )
    with answer:
        first_line(views.sharing.shared_line(shared_tables, recipients))
    finding_lines([WHOLE_FILES, BOUNDS])
    finding_lines(
        [
            Finding("configuration-not-understood", Severity.ATTENTION, "The configuration is not understood whole", w)
            for w in configuration.warnings
        ]
    )
    with grid(186):
        tile(
            "Tables shared",
            views.units.format_count(shared_tables.height),
            f"in {views.units.count_text(shared_tables['share'].n_unique(), 'share')}",
        )
        tile(
            "Recipients",
            views.units.format_count(recipients.height),
            f"{recipients.filter(state='reads').height} can read now",
        )
        tile(
            "Live tokens",
            views.units.format_count(tokens.filter(state="live").height),
            help="Only their hashes are kept.",
        )
        views_shared = shared_tables["view"].drop_nulls().len()
        tile("Views", views.units.format_count(views_shared), help="Copies that hold only what they show.")
    st.markdown(f":small[:gray[Recipients reach it at]] {escape(configuration.endpoint)}")
    with card("What is shared, and with whom", "in the configuration's order; choose one to open it where it lies"):
        downloads.offer("what is shared", shared_tables)
        if shared_tables.is_empty():
            nothing("Nothing is shared.", "The configuration names no table.")
        else:
            names = ("share", "schema", "table", "recipients", "history", "view", "location")
            table_columns = {name: columns.text(name) for name in names}
            choose(shared_tables, table_columns, shared_tables["location"].to_list(), key="shared-out")
    with grid(400):
        with card("Recipients", "a share is granted whole"):
            frame(
                recipients,
                {
                    "recipient": columns.text("recipient"),
                    "shares": columns.text("shares"),
                    "state": columns.text("state"),
                    "live_tokens": columns.number("live tokens"),
                },
                key="recipients",
                place=HALF,
            )
        with card("Tokens", "by their ids; the tokens themselves are kept nowhere"):
            if tokens.is_empty():
                nothing("There are no tokens.", "No recipient can read yet.")
            else:
                frame(
                    tokens.reverse(),
                    {
                        "recipient": columns.text("recipient"),
                        "id": columns.text("id"),
                        "state": columns.text("state"),
                        "created": columns.timestamp("created, UTC", of="created"),
                        "expires": columns.timestamp("expires, UTC", of="expires"),
                    },
                    key="tokens",
                    place=HALF,
                )
    with card("A profile for a recipient", "with a new token; the file is the only place that it stands in"):
        _profile(configuration, tokens)


def _profile(configuration: ShareConfiguration, tokens: pl.DataFrame) -> None:
    names = [r.name for r in configuration.settings.recipients]
    if not names or configuration.settings.tokens is None:
        nothing("No profile can be made.", "The configuration names no recipients, or no file for their tokens.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        recipient = st.selectbox("Recipient", names, key="profile-recipient", width=200)
        life = st.segmented_control("Valid for", list(_LIVES), default="90 days", required=True, key="profile-life")
    if not config.settings().share_tokens:
        expires = {"1 year": "365d", "no end": "never"}.get(life, life.replace(" days", "d"))
        st.code(
            f"lakeview share token create {configuration.path} {recipient} --expires {expires} "
            f"--profile {recipient}.share",
            language=None,
            wrap_lines=True,
        )
        st.markdown(":small[:gray[LAKEVIEW_SHARE_TOKENS=1 makes them here, for everyone who reaches this app.]]")
        return
    live = tokens.filter(recipient=recipient, state="live").height
    st.download_button(
        f"Make a token and download {recipient}.share",
        lambda: configuration.new_profile(recipient, _LIVES[life], cache.now),
        file_name=f"{recipient}.share",
        mime="application/json",
        icon=":material/key:",
        key="profile-download",
        disabled=live >= _MOST_LIVE,
        help="Send it as you would send a password.",
    )
    if live >= _MOST_LIVE:
        warning = f"{escape(recipient)} has {live} live tokens: `lakeview share token rotate` or `revoke` ends one."
        st.markdown(f":small[:gray[{warning}]]")


# -- what was read


def audit(configuration: ShareConfiguration, answer: DeltaGenerator) -> None:
    """What the audit log says was read in the last days, read on a click; who read how much goes to `answer`."""
    address = configuration.settings.audit
    if address is None:
        nothing("No audit log is kept.", "Add audit: audit to the configuration, and restart the server.")
        return
    table = lv.open_table(address)
    files = table.files(columns=["size"])["size"]
    bytes_read = views.units.format_bytes(views.sums.total_of(files))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        days = st.segmented_control("The last", list(_DAYS), default="30 days", required=True, key="audit-days")
        st.button(
            f"Read the audit log: at most {views.units.count_text(files.len(), 'file')}, {bytes_read}",
            type="primary",
            key="read-audit",
            on_click=lambda: st.session_state.update({_READ: True}),
        )
        link("data", "Open it as a table", {"table": address})
    if not st.session_state.get(_READ):
        return
    requests = _requests(address, table.latest_version, _DAYS[days])
    with answer:
        first_line(views.sharing.reads_line(requests, days))
    if requests.is_empty():
        nothing(f"No recipient asked for anything in {days}.", "The server writes its log every minute.")
        return
    by_day, reads = views.sharing.reads_by_day(requests), views.sharing.reads(requests)
    downloads.offer("reads", reads)
    downloads.offer("reads by day", by_day)
    with card("By day", "bytes of files and answers; orange: refused, because a token, a grant or a URL did not hold"):
        stack(charts.sharing.reads_by_day_bars(by_day, dark=dark()), key="reads-by-day")
    with card("Who read what", "one row a recipient and table, the latest first"):
        frame(
            reads,
            {
                "recipient": columns.text("recipient", null="not recognised"),
                "table": columns.text("table", null="none, or a list", least=_TABLE),
                "last": columns.timestamp("last, UTC", of="last"),
                "version": columns.version("version", help="the newest that was read"),
                "requests": columns.number("requests"),
                "file_requests": columns.number("of files"),
                "bytes": columns.size("bytes"),
                "refused": columns.number("refused"),
            },
            key="reads",
        )


@cache_values(8, 60)
def _requests(address: str, latest: int, days: int) -> pl.DataFrame:
    table = lv.open_table(address)
    names = table.snapshot(latest).schema.names
    if lacking := [name for name in views.sharing.REQUESTS if name not in names]:
        raise InvalidRequestError(
            f"{address} is no audit log of a sharing server: it has no column {lacking[0]}",
            fix="give audit: a folder of its own",
            place=address,
            kind="no-audit-log",
        )
    return views.sharing.recent_requests(table.scan(latest), now=cache.now(), days=days)
