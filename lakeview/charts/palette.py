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


LIGHT = Palette(
    page="#FFFFFF",
    text="#1B232C",
    muted="#5B6670",
    grid="#EDF0F3",
    axis="#CBD2D9",
    band="#E9F0F8",
    absent="#D5DAE0",
    quiet="#8FB6E0",
    zero="#F1F3F6",
    blue="#1D66B8",
    green="#0A8A70",
    orange="#D9640F",
    violet="#8E2C86",
    gray="#98A2AC",
    red="#B4173A",
    blue_text="#1D66B8",
    green_text="#08705B",
    orange_text="#A94A06",
    violet_text="#8E2C86",
    gray_text="#5B6670",
    red_text="#B4173A",
    sequential=(
        "#F1F6FC",
        "#DCE9F7",
        "#C1D9F0",
        "#A1C4E7",
        "#7CABDB",
        "#568FCC",
        "#3478BE",
        "#1D66B8",
        "#154E91",
        "#0E376A",
    ),
)

DARK = Palette(
    page="#12161B",
    text="#E3E8ED",
    muted="#9AA5B1",
    grid="#1F262E",
    axis="#36404A",
    band="#1A2735",
    absent="#2E363F",
    quiet="#2F6499",
    zero="#1B2129",
    blue="#5CA8F5",
    green="#45CDA9",
    orange="#F2A04E",
    violet="#D277C6",
    gray="#6F7A86",
    red="#FF5C77",
    blue_text="#7DBBF8",
    green_text="#5FD6B6",
    orange_text="#F5B06B",
    violet_text="#DE97D5",
    gray_text="#9AA5B1",
    red_text="#FF8196",
    sequential=(
        "#16202B",
        "#182B40",
        "#1B3855",
        "#20476D",
        "#285887",
        "#326CA4",
        "#3F82C2",
        "#5CA8F5",
        "#8CC3F9",
        "#BDDDFC",
    ),
)


def palette(dark: bool = False) -> Palette:
    """The colours of the dark or the light theme."""
    return DARK if dark else LIGHT
