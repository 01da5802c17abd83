"""The schemas a table had to the files that were written before a column existed: there it is wholly null.

A file without a column gives null for it (Delta, "Column Mapping"; Iceberg, "Column Projection"), and its statistics do
not mention the column: without the schemas of the log the nulls of such files would not be counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from lakeview.model.data_types import Field, StructType
from lakeview.model.schema import Schema, leaf_name
from lakeview.views.schema.null_shares import counts_of
from lakeview.views.sums import shown_bounds
from lakeview.views.units import format_share, format_version

Identity = tuple[str | int, ...]
"""What names a leaf column for good: its field ids, or the names it has in data files, without regard to case."""

NEVER = (1 << 63) - 1
"""The position of a schema that is not yet that of any version."""
BEFORE_ALL = -1
"""The position of the versions before the oldest one that the log records."""


ABSENT_SHARES = pl.Schema(
    {"path": pl.String(), "absent_share": pl.Float64(), "absent": pl.String(), "absent_text": pl.String()}
)
"""One row a leaf column that some files lack. `absent_share`: of all rows those of files written before the column
existed; `absent`: when that was, `before v61`; `absent_text`: both, with the mark of a bound."""

_MARKS = {
    (False, False): "",
    (True, False): "\N{LESS-THAN OR EQUAL TO}",
    (False, True): "\N{GREATER-THAN OR EQUAL TO}",
    (True, True): "\N{ALMOST EQUAL TO}",
}
"""The mark of a share, by whether rows of such files may be deleted, and whether more files may lack the column."""


class Absence(NamedTuple):
    """The positions of the versions whose new files lack a column: from `since` on, before `until`."""

    since: int
    until: int


def births(schemas: Sequence[tuple[int, Schema | None]]) -> dict[Identity, int]:
    """The position of the first version whose schema has a column, from the positions of schema changes, oldest first.

    A schema that cannot be read is None: it may have had any column, so later columns count from its position on.
    """
    first: dict[Identity, int] = {}
    unreadable: int | None = None
    for position, schema in schemas:
        if schema is None:
            unreadable = position if unreadable is None else unreadable
            continue
        for way in _leaves(schema.fields, ()):
            first.setdefault(_identity(way), position if unreadable is None else unreadable)
    return first


def absences(
    schema: Schema, first: Mapping[Identity, int], start: int, default_key: str | None = None
) -> dict[str, Absence]:
    """The Absence of each leaf column that came after the oldest schema of the log, at the position `start`.

    Names may have been those of earlier columns: of files from before `start` nothing is proved. Field ids are never
    used again, so that files of any age lack the column. A column with a default (`default_key` of its metadata) is
    left out: files that lack it give the default.
    """
    late: dict[str, Absence] = {}
    for way in _leaves(schema.fields, ()):
        until = first.get(_identity(way), NEVER)
        if until > start and (default_key is None or all(f.metadata.get(default_key) is None for f in way)):
            has_lasting_id = way[-1].id is not None and way[-1].physical_name is None
            late[leaf_name(tuple(f.name for f in way))] = Absence(BEFORE_ALL if has_lasting_id else start, until)
    return late


def with_absent_columns(
    statistics: pl.DataFrame, absent: Mapping[str, Absence], arrivals: pl.Series, rows: pl.Series
) -> pl.DataFrame:
    """STATISTICS whose null counts include files that were written before a column: all their `rows`.

    `arrivals`: for each row the position of the version that first added the file, BEFORE_ALL for one that was there
    before the oldest version, null where it is unknown. A count that a writer recorded stays.
    """
    columns = []
    yes = pl.Series([True]).new_from_index(0, statistics.height)
    for name in absent.keys() & set(statistics.columns):
        since, until = absent[name]
        fields = statistics[name].struct.unnest()
        lacks = ((arrivals >= since) & (arrivals < until)).fill_null(value=False)
        lacks = lacks & fields["null_count"].is_null() & rows.is_not_null()
        column = fields.with_columns(
            rows.zip_with(lacks, fields["null_count"]).cast(fields.schema["null_count"]).alias("null_count"),
            yes.zip_with(lacks, fields["null_count_exact"]).alias("null_count_exact"),
        )
        columns.append(column.to_struct(name))
    return statistics.with_columns(columns)


def absent_shares(
    first: Mapping[str, int | None],
    recorded_statistics: pl.DataFrame,
    complete: pl.DataFrame,
    files: pl.DataFrame,
    rows: int | None,
    least: int | None = None,
) -> pl.DataFrame:
    """ABSENT_SHARES of the columns that were first in the schemas of these versions, None where in that of none yet.

    Files lack a column where the `complete` STATISTICS know of nulls that the `recorded_statistics` do not. `files`:
    FILES; `rows`: the live rows, if known, `least` a bound of them.
    """
    counts = counts_of(complete, files)
    absences = []
    for name in first.keys() & set(complete.columns):
        has_no_count = recorded_statistics[name].struct.field("null_count").is_null()
        lacking = counts.filter(has_no_count & complete[name].struct.field("null_count").is_not_null())
        count = int((lacking["records"] - lacking["deleted"].fill_null(0)).sum())
        over = rows or least
        if not count or not over:
            continue
        is_loose = rows is None or lacking["deleted"].has_nulls()
        is_partial = counts["records"].filter(has_no_count).has_nulls()
        version = first[name]
        when = "in no file yet" if version is None else f"before {format_version(version)}"
        absences.append((name, min(count / over, 1.0), when, _MARKS[is_loose, is_partial]))
    schema = {"path": pl.String(), "absent_share": pl.Float64(), "absent": pl.String(), "mark": pl.String()}
    shares = pl.DataFrame(absences, schema=schema, orient="row").with_columns(shown_bounds("absent_share"))
    rows_of_texts = shares.select("absent_share", "mark", "absent").iter_rows()
    texts = [f"{format_share(share, mark)} {when}" for share, mark, when in rows_of_texts]
    return shares.with_columns(absent_text=pl.Series(texts, dtype=pl.String)).select(ABSENT_SHARES.names())


def _leaves(fields: Sequence[Field], above: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    """The fields on the way to each leaf, the outermost first."""
    for f in fields:
        way = (*above, f)
        if isinstance(f.type, StructType):
            yield from _leaves(f.type.fields, way)
        else:
            yield way


def _identity(way: Sequence[Field]) -> Identity:
    return tuple(f.id if f.id is not None and not f.physical_name else f.stored_name.casefold() for f in way)
