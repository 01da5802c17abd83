"""A widget's state to a parameter of the link and back, so that a link, back and forward set the widget.

Streamlit's own `bind="query-params"` is not used: leaving a page takes its parameters out of the link before the page
has changed, which is a step of its own in the browser's history; and two pages' widgets of one name fall out.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.common import user_key_from_element_id

from lakeview.model.printable import visible

_T = TypeVar("_T")
_PAGE, _LINKS, _DEFAULTS = "_held_on", "_held", "_defaults"


def begin(page: str) -> None:
    """To be called once a run: another page's widgets are others, even under the same keys."""
    if st.session_state.get(_PAGE) != page:
        for key in st.session_state.get(_LINKS, {}):
            st.session_state.pop(key, None)
        st.session_state[_PAGE], st.session_state[_LINKS], st.session_state[_DEFAULTS] = page, {}, {}


def link_widget(
    key: str,
    default: Any = "",
    options: Iterable[Any] | None = None,
    *,
    many: bool = False,
    read: Callable[[str], Any] = str,
) -> str:
    """The key for a widget, whose state is in the link under this key unless it is the default.

    Called just before the widget is drawn, which gets the key and no default. A state that is none of the `options`
    is the default. `many`: the state is a list of options; `read` makes a state of text where there are no options,
    and raises ValueError for what is none.
    """
    texts = None if options is None else {_text(option): option for option in options}
    links: dict[str, list[str]] = st.session_state.setdefault(_LINKS, {})
    url = st.query_params.get_all(key)
    link = links.get(key, url) if _is_part() else url
    _follow_default(key, default, link)
    is_unknown = bool(link) and texts is not None and texts.keys().isdisjoint(link)
    if is_unknown and st.session_state.get(key, default) == default:
        st.session_state[key] = default  # the link stays as it is: it may be an option later
        return key
    if key not in st.session_state or (links.get(key) != link and not is_unknown):  # a link new to the widget
        state = _state(link, default, texts, read, many=many)
    else:
        state = _option(st.session_state[key], default, texts, many=many)
    parameters = _parameters(state, default, many=many)
    # a text is set until the browser has drawn its field, and no longer: a run that ends would undo what is being typed
    if texts is not None or links.get(key) != parameters or not _is_drawn(key):
        st.session_state[key] = state
    links[key] = parameters
    if parameters != url:
        write_parameter(key, parameters)
    return key


def choice(
    label: str,
    options: Sequence[_T],
    key: str,
    default: _T | None = None,
    *,
    width: int,
    format_func: Callable[[_T], str] = str,
    **more: Any,
) -> _T:
    """A box of options whose label is for screen readers alone, in the link under this key; at first the default, or
    without one the first option."""
    start = options[0] if default is None else default
    state: _T = st.selectbox(
        label,
        options,
        key=link_widget(key, start, options),
        format_func=lambda option: visible(format_func(option)),
        label_visibility="collapsed",
        width=width,
        **more,
    )
    return state


def picker(
    label: str,
    options: Sequence[str],
    key: str,
    value: str | None,
    on_pick: Callable[[Any], None],
    *,
    width: int,
    format_func: Callable[[str], str] = str,
    **more: Any,
) -> None:
    """A box of options as `choice`, whose value a chart or a link may set too: it shows `value`, and `on_pick` gets the
    option that is chosen in it."""
    st.session_state[key] = value
    st.selectbox(
        label,
        options,
        key=key,
        format_func=lambda option: visible(format_func(option)),
        on_change=lambda: on_pick(st.session_state[key]),
        label_visibility="collapsed",
        width=width,
        **more,
    )


def page_number(height: int, size: int, key: str, start: int = 1) -> int:
    """Draws the choice of a page of so many rows, if there is more than one, in the link under this key; its number."""
    pages = max(1, -(-height // size))
    return int(st.pagination(pages, key=link_widget(key, start, range(1, pages + 1)))) if pages > 1 else 1


def _option(state: Any, default: Any, texts: dict[str, Any] | None, *, many: bool) -> Any:
    """The state, the default in place of one that is no option any more."""
    return state if texts is None or many or _text(state) in texts else default


def _is_part() -> bool:
    """True where a fragment runs alone: never because of a link, and its own is that of the moment when the browser
    asked for it, before what it has been sent since."""
    run = get_script_run_ctx()
    return run is not None and bool(run.fragment_ids_this_run)


def _is_drawn(key: str) -> bool:
    """True once the browser reports the state of a widget. Until then each run has to send it: the browser knows the
    latest run's only, and a widget that it draws without one gets its default, as if that had been chosen."""
    run = get_script_run_ctx()
    states = [] if run is None or key not in st.session_state else run.session_state.get_widget_states()
    return any(user_key_from_element_id(state.id) == key for state in states)


def _follow_default(key: str, default: Any, link: list[str]) -> None:
    """Replaces a state that is not in the link because it was the default of another table or version."""
    defaults: dict[str, Any] = st.session_state.setdefault(_DEFAULTS, {})
    if not link and defaults.get(key, default) != default and st.session_state.get(key) == defaults[key]:
        st.session_state[key] = default
    defaults[key] = default


def _parameters(state: Any, default: Any, *, many: bool) -> list[str]:
    """A state as the link has it: nothing for the default."""
    if state == default:
        return []
    return [_text(one) for one in state] if many else [_text(state)]


def _state(
    link: list[str], default: Any, texts: dict[str, Any] | None, read: Callable[[str], Any], *, many: bool
) -> Any:
    if many:
        states = [text if texts is None else texts[text] for text in link if texts is None or text in texts]
        return states or default
    if not link:
        return default
    if texts is not None:
        return texts.get(link[-1], default)
    try:
        return read(link[-1])
    except ValueError:
        return default


def _text(state: Any) -> str:
    if state is None:
        return ""
    return state.isoformat() if hasattr(state, "isoformat") else str(state)


def write_parameters(parameters: Mapping[str, str], without: Collection[str] = ()) -> None:
    """Puts parameters into the link, and takes those `without` out: at once, so that it is one step of the browser's
    history."""
    left_out = {*without, *parameters}
    others = {key: st.query_params.get_all(key) for key in st.query_params if key not in left_out}
    st.query_params.from_dict({**others, **parameters})


def write_parameter(key: str, texts: str | list[str]) -> None:
    """Puts a parameter into the link, or takes it out where there is no text."""
    if texts:
        st.query_params[key] = texts
    elif key in st.query_params:
        del st.query_params[key]
