"""Live files to how they lie: a histogram of sizes in doubling bins, a few figures, and one page of a listing."""

import math
from dataclasses import dataclass
from itertools import takewhile

import polars as pl

from lakeview.model.addresses import is_absolute
from lakeview.model.column_values import least_records
from lakeview.model.snapshot import Snapshot
from lakeview.views.conform import conform
from lakeview.views.sums import at_least, total, zero_where
from lakeview.views.thresholds import SMALL_FILE_BYTES, TARGET_HIGH, TARGET_LOW
from lakeview.views.timeline.lifetimes import additions
from lakeview.views.units import BYTE_UNITS, EN_DASH, count_text, format_percent
from lakeview.views.values import bound_texts, statistic

FILE_SIZES = pl.Schema(
    {
        "bin_low": pl.Int64(),
        "bin_high": pl.Int64(),
        "label": pl.String(),
        "files": pl.Int64(),
        "bytes": pl.Int64(),
        "small": pl.Boolean(),
        "target": pl.Boolean(),
    }
)
"""One row a bin of sizes from `bin_low` up to below `bin_high` bytes (each twice the last), empty ones included; the
first reaches down to 0; files of unknown size are in none. `small`: below SMALL_FILE_BYTES; `target`: between
TARGET_LOW and TARGET_HIGH."""

FILE_PAGE = pl.Schema(
    {
        "path": pl.String(),
        "partition_text": pl.String(),
        "size": pl.Int64(),
        "records": pl.Int64(),
        "deleted_records": pl.Int64(),
        "added": pl.Int64(),
        "null_count": pl.Int64(),
        "min_text": pl.String(),
        "max_text": pl.String(),
    }
)
"""One row a file. `added`: the version that added it, null unknown; the last three of one chosen column, null without
statistics."""

_LOWEST_BIN = 16  # 64 KiB
_HIGHEST_BIN = 33  # 8 GiB and more
_TARGET_BIN = 27  # the bin that ends at TARGET_HIGH


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Figures of the live files of one version; None where unknown. Sizes in bytes.

    `files_without_size` are recorded with an invalid one: `median_size`, `p95_size` and the small files are of the
    others. `files_without_records` have no row count; for `files_perhaps_with_deletes` it is not recorded whether rows
    are deleted; `least_bytes` and `least_records` (live rows) are sums over the files that record them;
    `least_deleted_records`: those of the files that record them; `most_deleted_records`: the rows of the files but for
    `least_records`;
    `ideal_files`: how many files of up to TARGET_HIGH would hold the bytes of each partition.
    """

    files: int
    files_without_size: int
    bytes: int | None
    least_bytes: int | None
    least_records: int | None
    median_size: int | None
    p95_size: int | None
    median_records: int | None
    p95_records: int | None
    files_without_records: int
    files_with_deletes: int
    files_perhaps_with_deletes: int
    deleted_records: int | None
    least_deleted_records: int | None
    most_deleted_records: int | None
    small_files: int
    small_bytes: int | None
    ideal_files: int | None

    @property
    def with_records_share(self) -> float | None:
        """The share of files with a row count."""
        return None if self.files == 0 else 1 - self.files_without_records / self.files

    @property
    def files_with_deletes_text(self) -> str:
        """How many files have deleted rows, `≤ 4` where that is not known of some."""
        unknown = self.files_perhaps_with_deletes
        mark = "\N{LESS-THAN OR EQUAL TO} " if unknown else ""
        return f"{mark}{self.files_with_deletes + unknown:,}"

    @property
    def deleted_records_text(self) -> str:
        """How many rows are deleted, or at most so many where that is all that the log tells."""
        if self.deleted_records is not None:
            return count_text(self.deleted_records, "row")
        most = self.most_deleted_records
        return "rows unknown" if most is None else f"\N{LESS-THAN OR EQUAL TO} {count_text(most, 'row')}"


def file_sizes(files: pl.DataFrame) -> pl.DataFrame:
    """FILE_SIZES of FILES; the bins always reach the target sizes, so that the distance to them shows."""
    # log2 is exact for powers of two up to 2**53, so that a file of 64 MiB opens its bin
    place = pl.col("size").clip(1).log(2).floor().cast(pl.Int64).clip(_LOWEST_BIN - 1, _HIGHEST_BIN).alias("place")
    counts = files.drop_nulls("size").group_by(place).agg(files=pl.len().cast(pl.Int64), bytes=total("size"))
    highest = counts["place"].max()
    top = max(_TARGET_BIN, highest if isinstance(highest, int) else 0)
    rows = []
    for p in range(_LOWEST_BIN - 1, top + 1):
        low, high = 0 if p < _LOWEST_BIN else 1 << p, 1 << (p + 1)
        last = p == _HIGHEST_BIN
        label = (
            f"<{_size(high)}" if low == 0 else f"\N{GREATER-THAN OR EQUAL TO}{_size(low)}" if last else _span(low, high)
        )
        rows.append((p, low, high, label, high <= SMALL_FILE_BYTES, low >= TARGET_LOW and high <= TARGET_HIGH))
    schema = {"place": pl.Int64(), **{n: FILE_SIZES[n] for n in ("bin_low", "bin_high", "label", "small", "target")}}
    bins = pl.DataFrame(rows, schema=schema, orient="row")
    return (
        bins.join(counts, on="place", how="left", maintain_order="left")
        .with_columns(zero_where(pl.col("files").is_null(), "files", "bytes"))
        .pipe(conform, FILE_SIZES)
    )


def files_in_bin(files: pl.DataFrame, bins: pl.DataFrame, label: str) -> pl.DataFrame:
    """The FILES that fall in the bin of FILE_SIZES with this label; none for a label that no bin has."""
    ends = bins.filter(pl.col("label") == label).select("bin_low", "bin_high").rows()
    if not ends:
        return files.clear()
    low, high = ends[0]
    last = high == bins["bin_high"].max()  # the last one has no end
    return files.filter((pl.col("size") >= low) & (pl.lit(last) | (pl.col("size") < high)))


def file_facts(files: pl.DataFrame, delete_files: pl.DataFrame | None = None) -> FileFacts:
    """The figures of FILES; with the files that delete rows of them a tighter bound of the rows."""
    small = pl.col("size") < SMALL_FILE_BYTES
    sums = files.select(
        files=pl.len(),
        files_without_size=pl.col("size").null_count(),
        bytes=total("size"),
        least_bytes=at_least("size"),
        median_size=pl.col("size").quantile(0.5, "nearest"),
        p95_size=pl.col("size").quantile(0.95, "nearest"),
        median_records=pl.col("records").quantile(0.5, "nearest"),
        p95_records=pl.col("records").quantile(0.95, "nearest"),
        files_without_records=pl.col("records").is_null().sum(),
        files_with_deletes=(pl.col("deletion_vector").is_not_null() | (pl.col("deleted_records") > 0)).sum(),
        files_perhaps_with_deletes=(pl.col("deletion_vector").is_null() & pl.col("deleted_records").is_null()).sum(),
        deleted_records=total("deleted_records"),
        least_deleted_records=at_least("deleted_records"),
        records=total("records"),
        small_files=small.sum(),
        small_bytes=pl.when(pl.col("size").is_not_null().all()).then(pl.col("size").filter(small).sum()),
    ).row(0, named=True)
    ideal = files.group_by("partition_text").agg(bytes=total("size"))["bytes"]
    ideal_files = None if ideal.has_nulls() else sum(max(1, math.ceil(b / TARGET_HIGH)) for b in ideal.to_list())
    whole = {name: None if value is None else int(value) for name, value in sums.items()}
    rows, least = whole.pop("records"), least_records(files, delete_files)
    whole["least_records"] = least
    whole["most_deleted_records"] = None if rows is None or least is None else rows - least
    return FileFacts(**whole, ideal_files=ideal_files)  # type: ignore[arg-type]  # counts and sums are never null


def file_page(
    files: pl.DataFrame,
    sort: str = "size",
    descending: bool = False,
    offset: int = 0,
    limit: int = 100,
    *,
    lifetimes: pl.DataFrame | None = None,
    statistics: pl.DataFrame | None = None,
    column: str | None = None,
) -> pl.DataFrame:
    """FILE_PAGE: `limit` files from `offset` on, by a column of FILES (ties by path), nulls last.

    LIFETIMES bring `added`; STATISTICS with a `column` bring its range.
    """
    page = (
        files.lazy()
        .select("path", "partition_text", "size", "records", "deleted_records", "deletion_vector", sort_key=sort)
        .sort("sort_key", "path", descending=[descending, False], nulls_last=True)
        .slice(offset, limit)
        .drop("sort_key")
        .collect()
    )
    if lifetimes is None:
        page = page.with_columns(added=pl.lit(None, dtype=pl.Int64))
    else:
        on_page = lifetimes.filter(pl.col("path").is_in(page["path"].implode()))
        page = page.join(additions(on_page), on="path", how="left", maintain_order="left")
    return _with_range(page, statistics, column).pipe(conform, FILE_PAGE)


def common_folder(paths: pl.Series) -> str:
    """The folder, with its last slash, that absolute paths share; "" where they share none or one is relative (to the
    table's own folder): what a listing may leave out to show where its files differ."""
    first, last = paths.min(), paths.max()  # what the least and the greatest share, all share
    if not isinstance(first, str) or not isinstance(last, str) or not (is_absolute(first) and is_absolute(last)):
        return ""
    pairs = zip(first.split("/")[:-1], last.split("/")[:-1], strict=False)
    folder = "".join(f"{name}/" for name, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return "" if folder.endswith("//") else folder  # of a scheme alone


def _with_range(page: pl.DataFrame, statistics: pl.DataFrame | None, column: str | None) -> pl.DataFrame:
    names = ("null_count", "min_text", "max_text")
    if statistics is None or column is None or column not in statistics.columns:
        return page.with_columns(pl.lit(None, dtype=FILE_PAGE[n]).alias(n) for n in names)
    texts = pl.DataFrame(
        {"path": statistics["_path"], "deletion_vector": statistics["_deletion_vector"], "range": statistics[column]}
    ).filter(pl.col("path").is_in(page["path"].implode()))
    page = page.join(texts, on=["path", "deletion_vector"], how="left", nulls_equal=True, maintain_order="left")
    parts = page["range"].struct.unnest()
    exact = statistic(parts, "exact", pl.Boolean())
    return page.with_columns(
        null_count=statistic(parts, "null_count", pl.Int64()),
        min_text=bound_texts(statistic(parts, "min", pl.Null()), exact),
        max_text=bound_texts(statistic(parts, "max", pl.Null()), exact),
    )


def _span(low: int, high: int) -> str:
    (a, unit_a), (b, unit_b) = _scale(low), _scale(high)
    return f"{a}{EN_DASH}{b} {unit_b}" if unit_a == unit_b else f"{a} {unit_a}{EN_DASH}{b} {unit_b}"


def _size(value: int) -> str:
    number, unit = _scale(value)
    return f"{number} {unit}"


def _scale(value: int) -> tuple[int, str]:
    place = (value.bit_length() - 1) // 10
    return value >> (10 * place), BYTE_UNITS[place]


@dataclass(frozen=True, slots=True)
class FileLayout:
    """FILE_SIZES and figures of a version's files, its first partitions by name, and the folder that all paths begin
    with, "" for none."""

    bins: pl.DataFrame
    facts: FileFacts
    partitions: tuple[str, ...]
    folder: str

    @property
    def labels(self) -> list[str]:
        """The bins that have files."""
        return self.bins.filter(pl.col("files") > 0)["label"].to_list()


def file_layout(snapshot: Snapshot, most_partitions: int = 1_000) -> FileLayout:
    """FileLayout of the files of a version."""
    files = snapshot.files
    partitions = files["partition_text"].drop_nulls().unique().sort().head(most_partitions)
    facts = file_facts(files, snapshot.delete_files)
    return FileLayout(file_sizes(files), facts, tuple(partitions), common_folder(files["path"]))


def files_of(
    files: pl.DataFrame, bins: pl.DataFrame, partition: str | None = None, label: str | None = None, path: str = ""
) -> pl.DataFrame:
    """FILES of one partition, one bin of FILE_SIZES, and with a text in their path; None, or no text, is any."""
    selection = files if partition is None else files.filter(pl.col("partition_text") == partition)
    selection = selection.filter(pl.col("path").str.contains(path, literal=True)) if path else selection
    return selection if label is None else files_in_bin(selection, bins, label)


def small_files_note(bins: pl.DataFrame) -> str:
    """The share of files under 1 MiB in FILE_SIZES, by count and by bytes."""
    small_files, small_bytes = bins.filter("small").select(pl.col("files", "bytes").sum()).row(0)
    all_files, all_bytes = bins.select(pl.col("files", "bytes").sum()).row(0)
    if not small_files:
        return "count above bytes: no small files"
    return (
        f"files under 1 MiB: {format_percent(small_files / all_files)} of the count, "
        f"{format_percent(small_bytes / all_bytes if all_bytes else None)} of the bytes"
    )
