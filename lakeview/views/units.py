"""Numbers, sizes, ages and moments to the text people read.

Rows have three figures and k, M, G, or comma groups where exact; bytes are binary and named (MiB, GiB), never MB;
percent has one decimal, or two figures of what is nearly none or all; moments are UTC. What is not known is "unknown",
never 0.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

import polars as pl

from lakeview.model.printable import ELLIPSIS
from lakeview.model.printable import count_text as count_text
from lakeview.model.version_names import name_of

UNKNOWN = "unknown"
_NO_VERSION = -1
_MANY_DIGITS = 12
_MOST_DIGITS = 15
_FOR_EVER_MS = 100 * 365 * 86_400_000
MINUS = "\N{MINUS SIGN}"
EN_DASH = "\N{EN DASH}"

_COUNT_UNITS = ("", "k", "M", "G", "T", "P")
BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def format_count(value: float | None, *, exact: bool = False, least: int | None = None) -> str:
    """`61.5 M`, or `61,480,112` with `exact`; below ten thousand always whole. Of an unknown one `≥ 61,480,112`, whole
    as well, where it is at least so many: rounded up it would be no bound."""
    if value is None:
        return f"\N{GREATER-THAN OR EQUAL TO} {least:,}" if least else UNKNOWN
    if exact or abs(value) < 10_000:
        return _with_sign(value, f"{abs(round(value)):,}")
    return _with_sign(value, _three_figures(abs(value), _COUNT_UNITS, 1000.0))


def format_figure(value: float) -> str:
    """A value of a column: whole numbers exactly, others with four figures, or all before the point; an exponent only
    where it is of more than 15 digits, or very small."""
    size = abs(value)
    is_short = size < 10**_MOST_DIGITS
    text = f"{size:,.0f}" if is_short and (size >= 1_000 or size == int(size)) else f"{size:,.4g}"
    return _with_sign(value, text)


def format_mean(value: float) -> str:
    """A mean of counts with one decimal where it is not whole, `3.3`; from a hundred on whole. A half is rounded up, as
    browsers round the numbers of tables."""
    exact = Decimal(value)
    short = exact.quantize(Decimal(1) if exact >= 100 else Decimal("0.1"), ROUND_HALF_UP)
    return f"{short:,.0f}" if short == short.to_integral_value() else f"{short:,}"


def format_means(values: Iterable[float]) -> list[str]:
    """Means that stand below each other, as `format_mean` has them: where one has a decimal, the others do as well."""
    texts = [format_mean(value) for value in values]
    if not any("." in text for text in texts):
        return texts
    return [text if "." in text or len(text) > 2 else f"{text}.0" for text in texts]


def format_bytes(value: float | None, *, least: int | None = None) -> str:
    """`8.77 GiB`; whole below one KiB. `≥ 8.77 GiB` of an unknown one that is at least so many."""
    if value is None:
        return f"\N{GREATER-THAN OR EQUAL TO} {format_bytes(least)}" if least else UNKNOWN
    if abs(value) < 1000:
        return _with_sign(value, f"{abs(round(value))} B")
    return _with_sign(value, _three_figures(abs(value), BYTE_UNITS, 1024.0))


def byte_unit(value: float) -> tuple[str, int]:
    """The largest unit that a value in bytes is at least one of, and the unit's bytes: `MiB`, 1048576."""
    power = next((power for power in (4, 3, 2, 1) if value >= 1024**power), 0)
    return BYTE_UNITS[power], 1024**power


def format_percent(share: float | None) -> str:
    """A share of one as `2.4 %`; none is `0 %` and all `100 %`; what is not quite these as `percent_figure` has it:
    `0.02 %`."""
    if share is None:
        return UNKNOWN
    figure = percent_figure(share)
    if 0 < figure < 0.0001:
        return "<0.0001 %"
    if 99.9999 < figure < 100:
        return ">99.9999 %"
    if figure in (0, 100):
        return f"{figure:.0f} %"
    text = f"{abs(figure):.1f}" if figure == round(figure, 1) else f"{abs(figure):.5f}".rstrip("0")
    return _with_sign(figure, f"{text} %")


def format_share(share: float | None, mark: str | None = None) -> str:
    """`format_percent` behind the mark of a bound: `≤ 2.4 %`."""
    return UNKNOWN if share is None else f"{mark or ''} {format_percent(share)}".strip()


def percent_figure(share: float, decimals: int = 1) -> float:
    """A share of one in percent with so many decimals. What these would make 0 or 100, and is not, has two significant
    figures of its distance: 0.02, 99.98."""
    percent = share * 100
    figure = round(percent, decimals)
    if figure == 0:
        return float(f"{percent:.2g}")
    if figure == 100:
        return round(100 - float(f"{100 - percent:.2g}"), 12)
    return figure


def format_age(age: timedelta | None) -> str:
    """Two units: `2 h 32 min`, `3 days 4 h`; from ten days on whole days, below a minute seconds."""
    if age is None:
        return UNKNOWN
    seconds = max(int(age.total_seconds()), 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days >= 10:
        return f"{days:,} days"
    if days:
        return _two(f"{days} day" if days == 1 else f"{days} days", hours % 24, "h")
    if hours:
        return _two(f"{hours} h", minutes % 60, "min")
    if minutes:
        return _two(f"{minutes} min", seconds % 60, "s")
    return f"{seconds} s"


def format_duration(milliseconds: int) -> str:
    """A duration as `format_age` gives an age; below a second in milliseconds: `350 ms`."""
    return f"{milliseconds} ms" if 0 <= milliseconds < 1_000 else format_age(timedelta(milliseconds=milliseconds))


def format_age_ms(milliseconds: int) -> str:
    """An age as recorded in milliseconds; one that no calendar has is for ever."""
    return format_age(timedelta(milliseconds=milliseconds)) if milliseconds < _FOR_EVER_MS else "ever"


def format_moment(moment: datetime | None, *, seconds: bool = False) -> str:
    """`2026-07-15 03:25`, in UTC; a naive moment is taken as UTC."""
    if moment is None:
        return UNKNOWN
    utc = moment if moment.tzinfo is None else moment.astimezone(UTC)
    return f"{utc:%Y-%m-%d %H:%M:%S}" if seconds else f"{utc:%Y-%m-%d %H:%M}"


def format_date(moment: datetime | None) -> str:
    """`2026-07-15`, in UTC."""
    return format_moment(moment).split(" ", maxsplit=1)[0]


def format_version(version: int | None) -> str:
    """`v63`; of an Iceberg snapshot its sequence number, `s14`; of another random number both ends, `27499...27766`.

    Ten digits tell a thousand such versions apart but for one case in twenty thousand; the whole number is text
    wherever one version is told about. -1 is what a table without versions is at.
    """
    if version is None:
        return UNKNOWN
    if version == _NO_VERSION:
        return "no version"
    text = str(version)
    if len(text) < _MANY_DIGITS:
        return f"v{text}"
    return name_of(version) or f"{text[:5]}{ELLIPSIS}{text[-5:]}"


def version_label(column: str) -> pl.Expr:
    """A column of versions as `format_version` writes them; null stays null."""
    text = pl.col(column).cast(pl.String)
    return (
        pl.when(pl.col(column) == _NO_VERSION)
        .then(pl.lit("no version"))
        .when(text.str.len_chars() < _MANY_DIGITS)
        .then(pl.lit("v") + text)
        .otherwise(pl.col(column).map_batches(_long_labels, return_dtype=pl.String))
        .alias(column)
    )


def _long_labels(versions: pl.Series) -> pl.Series:
    """`format_version` of each random number, null for the others."""
    random = versions.unique().drop_nulls()
    random = random.filter(random.cast(pl.String).str.len_chars() >= _MANY_DIGITS)
    labels = [format_version(version) for version in random]
    return versions.replace_strict(random, labels, default=None, return_dtype=pl.String)


def format_range(first: int, last: int) -> str:
    """`v42` to `v53` as one text with an en dash; a single version alone."""
    return format_version(first) if first == last else f"{format_version(first)}{EN_DASH}{format_version(last)}"


def format_change(value: float | None, *, bytes_: bool = False) -> str:
    """A difference with its sign: `+0.22 M`, a true minus below zero; bytes with `bytes_`."""
    if value is None:
        return UNKNOWN
    text = format_bytes(value) if bytes_ else format_count(value)
    return text if value < 0 else f"+{text}"


def format_row_change(rows: int) -> str:
    """`+22.3 k rows`, `+1 row`."""
    return f"{format_change(rows)} {'row' if abs(rows) == 1 else 'rows'}"


def gain_and_loss(gain: int | None, loss: int | None) -> str | None:
    """What came and what went, each with its sign, zero left out; `0` for neither, None where one is unknown."""
    if gain is None or loss is None:
        return None
    return " ".join(f"{sign}{count:,}" for sign, count in (("+", gain), (MINUS, loss)) if count) or "0"


def _with_sign(value: float, text: str) -> str:
    return f"{MINUS}{text}" if value < 0 else text


def _two(first: str, rest: int, unit: str) -> str:
    return f"{first} {rest} {unit}" if rest else first


def _three_figures(value: float, units: tuple[str, ...], step: float) -> str:
    figure, place = value, 0
    # 999.5 would be written with four figures: it belongs to the next unit
    while figure >= 999.5 and place < len(units) - 1:
        figure, place = figure / step, place + 1
    decimals = 2 if figure < 9.995 else 1 if figure < 99.95 else 0
    return f"{figure:,.{decimals}f} {units[place]}"
