"""Frames that a page shows to files: CSV, JSON and Parquet, made only on a click."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO

import polars as pl
import streamlit as st

from lakeview.model.printable import count_text

_OFFERED = "_downloads"


def reset() -> None:
    """Forgets what the last run offered; called before each page."""
    st.session_state[_OFFERED] = {}


def offer(name: str, frame: pl.DataFrame) -> None:
    """Puts a frame behind the download button of the header."""
    st.session_state.setdefault(_OFFERED, {})[name] = frame


def offered_frames() -> dict[str, pl.DataFrame]:
    """What the page offered in this run, by name."""
    frames: dict[str, pl.DataFrame] = st.session_state.get(_OFFERED, {})
    return dict(frames)


@st.dialog("Download", icon=":material/download:")
def dialog(stem: str, frames: Mapping[str, pl.DataFrame]) -> None:
    """Three buttons a frame; the file is made when one is pressed."""
    for name, frame in frames.items():
        extent = f"{count_text(frame.height, 'row')}, {count_text(frame.width, 'column')}"
        st.markdown(f"**{name}** &ensp; :small[:gray[{extent}]]")
        with st.container(horizontal=True):
            for kind, make in WRITERS.items():
                st.download_button(
                    kind,
                    partial(make, frame),
                    file_name=f"{stem}-{name.replace(' ', '-')}.{kind.lower()}",
                    icon=":material/download:",
                    key=f"download-{name}-{kind}",
                    on_click="ignore",
                    help=CSV_NOTE if kind == "CSV" else None,
                )


def csv_button(name: str, frame: pl.DataFrame) -> None:
    """A button that downloads a frame as CSV, made when it is pressed."""
    st.download_button(
        "CSV", partial(to_csv, frame), file_name=f"{name}.csv", icon=":material/download:", key=f"{name}-csv",
        on_click="ignore", help=CSV_NOTE,
    )  # fmt: skip


def to_csv(frame: pl.DataFrame) -> bytes:
    """CSV, nested values as JSON text; texts and headers that a spreadsheet would run as a formula behind a quote."""
    rows = flat(frame)
    columns = [_guard_formulas(series) if series.dtype == pl.String else series for series in rows.get_columns()]
    header = _guard_formulas(pl.Series("header", rows.columns, dtype=pl.String)).to_frame().transpose()
    return (header.write_csv(include_header=False) + pl.DataFrame(columns).write_csv(include_header=False)).encode()


def _guard_formulas(texts: pl.Series) -> pl.Series:
    return texts.str.replace(r"^([=+\-@\t\r])", "'$1")


CSV_NOTE = (
    "In CSV, a text or header that begins with =, +, - or @ stands behind a quote ('): spreadsheets run it otherwise."
)


def to_json(frame: pl.DataFrame) -> bytes:
    """JSON, one object a row."""
    return frame.write_json().encode()


def to_parquet(frame: pl.DataFrame) -> bytes:
    """Parquet, types kept."""
    buffer = BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


WRITERS: Mapping[str, Callable[[pl.DataFrame], bytes]] = {"CSV": to_csv, "JSON": to_json, "Parquet": to_parquet}


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Nested values as JSON text."""
    nested_columns = [name for name, type_ in frame.schema.items() if type_.is_nested()]
    texts = [
        pl.Series(
            name, [None if v is None else json.dumps(v, default=str) for v in frame[name].to_list()], dtype=pl.String
        )
        for name in nested_columns
    ]
    return frame.with_columns(texts)
