"""The sharing page's parts, as a recipient: a profile to what its server shares, and a table of it opened."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lakeview import views
from lakeview.app import cache, columns, downloads, errors, row_links, selection, uploads, widths
from lakeview.app.components import ROW_HEIGHT, card, facts, finding_lines, first_line, frame, grid, nothing
from lakeview.app.pages import SHARING_PROFILE
from lakeview.app.sharing import profiles
from lakeview.app.widget_state import link_widget
from lakeview.model import config
from lakeview.model.errors import LakeviewError
from lakeview.sharing.client.endpoints import SharingClient
from lakeview.sharing.client.portable_tasks import reach
from lakeview.sharing.client.profile import Profile, parse_address, read_profile

TABS = ("As a recipient", "What is shared", "What was read")
PROFILE, SHARE, UPLOAD, ANOTHER = SHARING_PROFILE, "share-name", "profile-upload", "another-profile"
_ADDRESS = 260
"""Pixels of an address, which is worth more than the id beside it."""
_UPLOAD_ERROR = "_profile-upload-error"
_SELECTION = "_chosen-on-sharing"
_NO_UPLOAD = (
    "It cannot be uploaded: this app opens nothing but what lies below its roots (LAKEVIEW_ROOTS). "
    "Put it below one of them, and type its path."
)


def profile_input() -> str:
    """The profile: its address as typed, or the name of one uploaded; "" for none."""
    st.text_input(
        "Profile",
        key=link_widget(PROFILE),
        placeholder="the profile file that you were sent: team.share, s3://inbox/team.share",
        icon=":material/badge:",
        help="Its path or address. The credential in it is sent to its server only, and shown nowhere.",
    )
    if profiles.can_be_written():
        if st.session_state[PROFILE]:  # of which the server may say that it has expired
            st.button("Upload another", icon=":material/upload:", type="tertiary", key=ANOTHER, on_click=_forget)
        else:
            st.file_uploader("Or upload it", key=UPLOAD, on_change=_upload, max_upload_size=1)
    else:
        st.markdown(f":small[:gray[{_NO_UPLOAD}]]")
    if (error := st.session_state.pop(_UPLOAD_ERROR, None)) is not None:
        raise error
    name = str(st.session_state[PROFILE]).strip()
    table = parse_address(name)
    return name if table is None else table[0]  # the address of a shared table begins with its profile


def _upload() -> None:
    file = st.session_state[UPLOAD]
    if file is not None:
        try:
            st.session_state[PROFILE] = profiles.upload(file.name, file.getvalue())
        except LakeviewError as error:
            st.session_state[_UPLOAD_ERROR] = error


def _forget() -> None:
    st.session_state[PROFILE] = ""


def shared_tables(answer: DeltaGenerator) -> None:
    """The profile, who it is for, and the tables that its server shares with it; how many goes to `answer`."""
    with card("Read what is shared with you", "by the profile file that you were sent", key="share-profile"):
        name = profile_input()
    if name:
        _browse(name, read_profile(uploads.address(name)), answer)
    else:
        with answer:
            first_line(views.sharing.NO_PROFILE)


def _browse(name: str, profile: Profile, answer: DeltaGenerator) -> None:
    finding_lines(profile.findings(cache.now()))
    listed_shares = _shares(profile.address)
    shares = listed_shares["share"].to_list()
    server = urlsplit(profile.endpoint).netloc
    with grid(400):
        with card("Profile", "who asks, and whom"):
            facts(_about(profile))
        with card("Shares", "what is granted together"):
            if not shares:
                with answer:
                    first_line(views.sharing.received_line(server, shares, "", 0))
                nothing("Nothing is shared.", "The server knows this profile, and grants it no share.")
                return
            names = {row["share"]: views.sharing.share_name(row) for row in listed_shares.iter_rows(named=True)}
            st.selectbox(
                "Share", shares, key=link_widget(SHARE, shares[0], shares), label_visibility="collapsed",
                format_func=lambda share: names.get(share, share),
            )  # fmt: skip
            st.markdown(f":small[:gray[{views.units.count_text(len(shares), 'share')}]]")
    share = st.session_state[SHARE]
    listing = _tables(profile.address, share)
    with answer:
        first_line(views.sharing.received_line(server, shares, share, listing.height))
    links = [f"{name}#{table.rpartition('#')[2]}" for table in listing["address"]]
    tables = listing.with_columns(address=pl.Series([uploads.own_address(link) for link in links], dtype=pl.String()))
    downloads.offer(f"tables of {share}", tables)
    with card(f"Tables of {share}", f"{views.units.count_text(tables.height, 'table')}: choose one to open it"):
        if tables.is_empty():
            nothing("There is no table.", "The share is there, and holds none yet.")
            return
        table_columns = {
            "schema": columns.text("schema"),
            "table": columns.text("table", least=widths.NAME),
            "address": columns.text("address, as lakeview takes it", least=_ADDRESS),
            "id": columns.text("id"),
        }
        choose(tables, table_columns, links, key="shared-tables")


def choose(rows: pl.DataFrame, cells: Mapping[str, object], names: Sequence[str], *, key: str) -> None:
    """A table of tables: a row that is chosen is opened, under its name in `names`."""
    frame(rows, cells, key=key, height=16 * ROW_HEIGHT, **row_links.row_pick(key, names, _select))


def _select(name: str) -> None:
    selection.select(name)
    st.session_state[_SELECTION] = True


def leave() -> None:
    """Goes to the table that was chosen, if one was."""
    if st.session_state.pop(_SELECTION, None):
        row_links.go("overview", selection.link())


def _about(profile: Profile) -> dict[str, str | None]:
    ends = "never" if profile.expires is None else f"{views.units.format_moment(profile.expires)} UTC"
    return {
        "server": profile.endpoint,
        "credentials": profile.kind.replace("_", " "),
        "valid until": ends,
        "file": errors.public_text(profile.address),
    }


@st.cache_data(ttl=30, max_entries=32, show_spinner=False)
def _shares(profile: str) -> pl.DataFrame:
    return _client(profile).shares()


@st.cache_data(ttl=30, max_entries=64, show_spinner=False)
def _tables(profile: str, share: str) -> pl.DataFrame:
    return _client(profile).all_tables(share)


def _client(profile: str) -> SharingClient:
    return SharingClient(read_profile(profile), limits=reach(config.settings()))
