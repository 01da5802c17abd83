"""The colours of both themes by their meaning, which is the same on every page and chart.

blue: the state; green: added; orange: removed, needs attention; violet: schema; gray: maintenance, context; red: broken
or wrong, nothing else. Colour never stands alone: lanes, shapes, heights, glyphs and words say the same.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by meaning; `…_text` where the colour is that of words."""

    page: str
    text: str
    muted: str
    grid: str
    axis: str
    band: str
    absent: str
    quiet: str
    zero: str
    blue: str
    green: str
    orange: str
    violet: str
    gray: str
    red: str
    blue_text: str
    green_text: str
    orange_text: str
    violet_text: str
    gray_text: str
    red_text: str
    sequential: tuple[str, ...]


_COLOURS = {
    "page": ("#FFFFFF", "#12161B"),
    "text": ("#1B232C", "#E3E8ED"),
    "muted": ("#5B6670", "#9AA5B1"),
    "grid": ("#EDF0F3", "#1F262E"),
    "axis": ("#CBD2D9", "#36404A"),
    "band": ("#E9F0F8", "#1A2735"),
    "absent": ("#D5DAE0", "#2E363F"),
    "quiet": ("#8FB6E0", "#2F6499"),
    "zero": ("#F1F3F6", "#1B2129"),
    "blue": ("#1D66B8", "#5CA8F5"),
    "green": ("#0A8A70", "#45CDA9"),
    "orange": ("#D9640F", "#F2A04E"),
    "violet": ("#8E2C86", "#D277C6"),
    "gray": ("#98A2AC", "#6F7A86"),
    "red": ("#B4173A", "#FF5C77"),
    "blue_text": ("#1D66B8", "#7DBBF8"),
    "green_text": ("#08705B", "#5FD6B6"),
    "orange_text": ("#A94A06", "#F5B06B"),
    "violet_text": ("#8E2C86", "#DE97D5"),
    "gray_text": ("#5B6670", "#9AA5B1"),
    "red_text": ("#B4173A", "#FF8196"),
}
"""Each colour in the light theme and in the dark one."""

_SEQUENCES = (
    ("#F1F6FC", "#DCE9F7", "#C1D9F0", "#A1C4E7", "#7CABDB", "#568FCC", "#3478BE", "#1D66B8", "#154E91", "#0E376A"),
    ("#16202B", "#182B40", "#1B3855", "#20476D", "#285887", "#326CA4", "#3F82C2", "#5CA8F5", "#8CC3F9", "#BDDDFC"),
)  # fmt: skip

LIGHT, DARK = (
    Palette(**{name: pair[theme] for name, pair in _COLOURS.items()}, sequential=_SEQUENCES[theme]) for theme in (0, 1)
)


def palette(dark: bool = False) -> Palette:
    """The colours of the dark or the light theme."""
    return DARK if dark else LIGHT
