"""The pickers on top of every page: table, branch or tag, version, and the version it is compared with."""

from functools import partial

from lakeview import views
from lakeview.app import selection, tables
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import picker
from lakeview.model.errors import LakeviewError

NO_COMPARISON = "none"
_NO_BASE, _PREVIOUS_BASE = "no comparison", "vs previous"
_AGAINST, _NOTE = "vs ", " · "
_MAX_CHOICES = 300


def table_picker() -> None:
    """Chooses another table: one that is offered, or an address typed in."""
    labels = {offer.name: offer.label for offer in tables.offers()}
    table = selection.remembered_selection().table
    if table is not None:
        labels.setdefault(table, tables.label(table))
    picker(
        "Table", list(labels), "pick_table", table, _pick_table, width=190, accept_new_options=True,
        format_func=lambda name: str(labels.get(name, name)), placeholder="choose a table",
    )  # fmt: skip


def _pick_table(choice: str | None) -> None:
    if choice is not None and all(offer.name != choice for offer in tables.offers()):
        choice = tables.picker_name(choice)
    selection.select(choice)


def version_pickers(now: OpenTable, page: str) -> None:
    """Chooses the version shown and the one it is compared with, of the branch shown; what is not listed can be typed.
    Where the table has more than its default branch, the branch or tag before them. Compare without a choice takes the
    version before."""
    _ref_picker(now)
    dates = commit_dates(now)
    versions = _on_branch(now, dates)
    picker(
        "Version", _choices(versions, now.version), "pick_version", str(now.version), partial(_pick, selection.VERSION),
        width=166, accept_new_options=True, format_func=lambda text: _version_label(text, now.latest, dates),
    )  # fmt: skip
    unchosen = _PREVIOUS_BASE if page == "compare" else _NO_BASE
    base = NO_COMPARISON if now.base is None else str(now.base)
    bases = [NO_COMPARISON, *_choices(versions, now.base)]
    picker(
        "Compare with", bases, "pick_base", base, partial(_pick, selection.BASE), width=146, accept_new_options=True,
        format_func=lambda text: unchosen if text == NO_COMPARISON else f"{_AGAINST}{_label(text)}",
    )  # fmt: skip


def _ref_picker(now: OpenTable) -> None:
    refs = now.frames.refs
    if refs.height < 2:  # the default branch alone is no choice
        return
    kinds = dict(refs.select("name", "kind").iter_rows())
    default = refs["name"][0]
    picker(
        "Branch or tag", list(kinds), "pick_ref", now.ref or default, partial(_pick_ref, default), width=150,
        format_func=lambda name: f"{kinds.get(name, 'ref')} {name}",
        help="The branch or tag whose history, newest version and file lifetimes are shown.",
    )  # fmt: skip


def _pick_ref(default: str, name: str) -> None:
    ref = None if name == default else name
    if ref != selection.remembered_selection().ref:  # else a label that the browser sent to another run
        selection.select_ref(ref)


def _pick(parameter: str, text: str) -> None:
    text = version_text(text)
    selection.select_part(parameter, None if text == NO_COMPARISON else text)


def version_text(text: str) -> str:
    """A version as it was typed, or that of a label: where back and forward follow each other, the browser sends a
    label of one run to another, whose labels differ, as a text that was typed."""
    if text in (_NO_BASE, _PREVIOUS_BASE):
        return NO_COMPARISON
    return text.removeprefix(_AGAINST).partition(_NOTE)[0]


def commit_dates(now: OpenTable) -> dict[str, str]:
    """The newest versions, as text, and the day of each one's commit, "" where it is unknown; newest first."""
    try:
        frame = now.frames.of_log("versions").head(_MAX_CHOICES)
    except LakeviewError:  # a log that cannot be listed has no choices; the page says why
        return {}
    return {
        str(version): "" if moment is None else f"{moment:%Y-%m-%d}"
        for version, moment in zip(frame["version"], frame["timestamp"], strict=True)
    }


def _on_branch(now: OpenTable, dates: dict[str, str]) -> list[str]:
    """Those of the versions that are on the line which ends at the latest one."""
    if now.frames.refs.is_empty():  # one line alone: its commits need not be read
        return list(dates)
    off_branch = {str(version) for version in now.look.off_branch_commits()["version"]}
    return [version for version in dates if version not in off_branch]


def _choices(versions: list[str], current: int | None) -> list[str]:
    missing = [str(current)] if current is not None and str(current) not in versions else []
    return missing + versions


def _version_label(text: str, latest: int, dates: dict[str, str]) -> str:
    number = text.removeprefix("v")
    note = "latest" if number == str(latest) else dates.get(number, "")
    return f"{_label(text)}{_NOTE}{note}" if note else _label(text)


def _label(text: str) -> str:
    """A version as it is chosen or typed, for people."""
    number = text.removeprefix("v")
    return views.units.format_version(int(number)) if number.removeprefix("-").isdecimal() else text
