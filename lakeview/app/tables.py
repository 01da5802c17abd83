"""Names to addresses: which tables the picker offers, what `demo/flights` in a link stands for; the input of a root."""

from collections import Counter
from dataclasses import dataclass, replace

import streamlit as st

from lakeview.app import cache, uploads
from lakeview.app.widget_state import link_widget
from lakeview.model import config
from lakeview.model.errors import AccessDeniedError, LakeviewError, NotATableError
from lakeview.model.printable import choices

DEMO = "demo"
DEMO_TABLE = "demo/flights"
_RECENT = "_recent"
_MAX_RECENT = 8


@dataclass(frozen=True, slots=True)
class Offer:
    """One table the picker offers: how a link names it, where it is, what it is called on screen, and its format."""

    name: str
    address: str
    label: str
    format: str | None = None


def demo_tables() -> list[Offer]:
    """The tables of the demo lake, the one its story is about first; none if it has not been built."""
    return sorted(_below(config.settings().demo, DEMO), key=lambda offer: offer.name != DEMO_TABLE)


def is_demo_allowed() -> bool:
    """Whether the demo lake's folder lies below an allowed root, or any table may be opened."""
    try:
        cache.found_tables(config.settings().demo)
    except AccessDeniedError:
        return False
    except LakeviewError:  # nothing there yet
        pass
    return True


def root_tables() -> list[Offer]:
    """The tables below each configured root; a root that cannot be listed offers none."""
    roots = config.settings().roots
    return [offer for root in roots for offer in _below(root, None)]


def recent() -> list[str]:
    """Names opened in this session, the last one first."""
    names: list[str] = st.session_state.get(_RECENT, [])
    return names


def remember(name: str) -> None:
    """Puts a name that could be opened at the head of the recent ones."""
    st.session_state[_RECENT] = [name, *(other for other in recent() if other != name)][:_MAX_RECENT]


def offers() -> list[Offer]:
    """What the picker offers: the demo lake, the roots, and what was opened before; a table of both under one name."""
    demo = demo_tables()
    places = {offer.address for offer in demo}
    lake_offers = demo + [offer for offer in root_tables() if offer.address not in places]
    names = places | {offer.name for offer in lake_offers}
    return distinguish(lake_offers + [Offer(name, name, label(name)) for name in recent() if name not in names])


def distinguish(options: list[Offer]) -> list[Offer]:
    """The offers with longer labels where several have the same: `s3://lake / orders` beside `lake / orders`."""
    for parts in range(3, max((offer.name.count("/") for offer in options), default=0) + 6):
        count = Counter(offer.label for offer in options)
        if all(times == 1 for times in count.values()):
            break
        options = [
            replace(offer, label=label(offer.name, parts)) if count[offer.label] > 1 else offer for offer in options
        ]
    return options


def default() -> str | None:
    """What is opened when nothing was chosen: the demo lake's main table, else the first one offered."""
    names = [offer.name for offer in offers()]
    return DEMO_TABLE if DEMO_TABLE in names else next(iter(names), None)


def address(name: str) -> str:
    """The address behind a name: that of the offer of this name or of an uploaded profile, else the name itself is an
    address.

    NotATableError for a table that the demo lake does not hold, and for an uploaded profile that is not there any more.
    """
    if not name.startswith(f"{DEMO}/"):
        return uploads.address(name)
    addresses = {offer.name: offer.address for offer in demo_tables()}
    if name not in addresses:
        holds = "holds no table of this name" if addresses else "is not built"
        fix = choices(name, list(addresses)) if addresses else "build it on the start page"
        raise NotATableError(f"{name} is no table: the demo lake {holds}", fix=fix, place=name)
    return addresses[name]


def strip_typed_name(text: str) -> str:
    """What was typed or pasted as a name: without blanks around it, and without the quotes of a shell's word."""
    name = text.strip()
    has_quotes = len(name) > 1 and name[0] == name[-1] and name[0] in "\"'`"
    return name[1:-1].strip() if has_quotes else name


def picker_name(text: str) -> str:
    """What was typed into the picker of tables as a name: that of the only offer whose last part it is, else an
    address. Streamlit puts what is typed before the offers that match it."""
    name = strip_typed_name(text)
    ends = [offer.name for offer in offers() if offer.label.rpartition(" / ")[2].casefold() == name.casefold()]
    return ends[0] if len(ends) == 1 else name


def label(name: str, parts: int = 2) -> str:
    """How a name is shown: the last parts of an address; of a shared one its schema and table."""
    *scheme, path = uploads.public_text(name).replace("\\", "/").rpartition("://")
    profile, _, table = path.rpartition("#")
    if profile and table.count(".") >= 2 and "/" not in table:
        path = "/".join([profile, *table.split(".", 2)])
    every = [part for part in path.split("/") if part]
    store = "".join(scheme) if len(every) < parts else ""
    return store + " / ".join(every[-parts:]) or name


def _below(root: str, prefix: str | None) -> list[Offer]:
    try:
        tables = cache.found_tables(root)
    except LakeviewError:  # nothing there yet, or not allowed: there is nothing to offer, and the page says so
        return []
    return [
        Offer(
            name=f"{prefix}/{row['name']}" if prefix else row["address"],
            address=row["address"],
            label=f"{prefix} / {row['name']}" if prefix else label(row["address"]),
            format=row["format"],
        )
        for row in tables.iter_rows(named=True)
    ]


ROOT = "root"
"""The key of the input, and its parameter of the link."""


def root_input(placeholder: str) -> str | None:
    """Draws the input and the choice of configured roots; returns the root, None if it is empty.

    The first configured root, or the demo lake, is the default.
    """
    roots = _offered_roots()
    root: str = st.text_input("Root", key=link_widget(ROOT, next(iter(roots), "")), placeholder=placeholder, width=420)
    if len(roots) > 1:
        st.selectbox(
            "Offered roots",
            roots,
            index=None,
            key="offered-root",
            placeholder="choose one",
            on_change=_take_offered,
            width=260,
        )
    return root.strip() or None


def _take_offered() -> None:
    root = st.session_state["offered-root"]
    if root is not None:
        st.session_state[ROOT] = root


def _offered_roots() -> list[str]:
    settings = config.settings()
    demo = [settings.demo] if demo_tables() else []
    return list(dict.fromkeys([*settings.roots, *demo]))
