"""Single values to JSON text: exact for any calendar and any number of digits."""

import base64
import math
import struct
import uuid

import msgspec

_DAY_SECONDS = 86_400


def quote(text: str) -> str:
    """A string as JSON; UnicodeEncodeError for a lone surrogate."""
    return msgspec.json.encode(text).decode()


def double(value: float) -> str:
    """The shortest text that reads back as this double; what JSON has no number for is a quoted word."""
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def single(value: float) -> str:
    """The shortest text that reads back as this 32-bit float."""
    if not math.isfinite(value):
        return double(value)
    data = struct.pack("<f", value)
    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        try:
            if struct.pack("<f", float(text)) == data:
                return double(float(text))
        except OverflowError:  # rounded up, the largest floats are none any more
            continue
    return double(float(f"{value:.9g}"))


def decimal(unscaled_value: int, scale: int) -> str:
    """`unscaled_value` times ten to the power of minus `scale`, every digit kept."""
    if scale == 0:
        return str(unscaled_value)
    digits = str(abs(unscaled_value)).rjust(scale + 1, "0")
    return f"{'-' if unscaled_value < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def binary(value: bytes) -> str:
    """Bytes as base64."""
    return f'"{base64.b64encode(value).decode()}"'


def uuid_text(value: bytes) -> str:
    """Sixteen bytes, most significant first, as a UUID."""
    return f'"{uuid.UUID(bytes=value)}"'


def date(days: int) -> str:
    """Days since 1970 as ISO 8601."""
    return f'"{_day(days)}"'


def time(microseconds: int) -> str:
    """Microseconds since midnight as ISO 8601."""
    return f'"{_clock(microseconds, 6)}"'


def timestamp(ticks: int, digits: int, has_zone: bool) -> str:
    """Ticks of 10 to the power of minus `digits` seconds since 1970 as ISO 8601, with Z if it is an instant."""
    days, rest = divmod(ticks, _DAY_SECONDS * 10**digits)
    return f'"{_day(days)}T{_clock(rest, digits)}{"Z" if has_zone else ""}"'


def _clock(ticks: int, digits: int) -> str:
    seconds, fraction = divmod(ticks, 10**digits)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{text}.{fraction:0{digits}d}" if fraction else text


def _day(days: int) -> str:
    """The day of the Gregorian calendar carried on both ways: 64 bits of time go far beyond Python's years."""
    # counted from 1 March of the year 0, so that a leap day is the last of its year and eras of 400 years are alike
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = year_of_era + era * 400 + (month <= 2)
    # "expanded" years carry a sign, as ISO 8601 asks
    year_text = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{year_text}-{month:02d}-{day:02d}"
