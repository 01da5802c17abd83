"""What a filter would read, part by part; and how well columns tell files apart."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from lakeview import views
from lakeview.model.data_types import Field, PrimitiveType, StructType
from lakeview.model.errors import InvalidRequestError
from lakeview.model.frames import COMMITS, FILES, LIFETIMES, PLAN
from lakeview.model.schema import Schema
from lakeview.predicates import predicate
from lakeview.predicates.expressions import conjuncts
from tests.views.test_columns import statistics

SCHEMA = Schema(
    (
        Field("carrier", PrimitiveType("string"), id=1),
        Field("delay", PrimitiveType("integer"), id=2),
        Field("place", StructType((Field("gate", PrimitiveType("long"), id=4),)), id=3),
    )
)


def files_of(records: list[int | None]) -> pl.DataFrame:
    rows = [{"path": f"f{i}", "size": 100 * (i + 1), "records": n, "deleted_records": 0} for i, n in enumerate(records)]
    return pl.DataFrame(rows, schema=FILES)


def plan_of(*reasons: str) -> pl.DataFrame:
    rows = [(f"f{i}", reason == "kept", reason, 100 * (i + 1)) for i, reason in enumerate(reasons)]
    return pl.DataFrame(rows, schema=PLAN, orient="row")


def test_a_file_spared_by_its_nulls_is_told_from_one_spared_by_its_range() -> None:
    stats = statistics({"delay": [(1, 9, 0), (50, 60, 0), (None, None, 5), (1, 9, 0)]})
    plan = plan_of("statistics", "kept", "statistics", "partition")
    verdicts = views.pruning.plan.file_verdicts(plan, predicate("delay > 40"), stats, files_of([5, 5, 5, 5]))
    assert verdicts.schema == views.pruning.plan.FILE_VERDICTS
    assert verdicts["reason"].to_list() == ["range", "kept", "nulls", "partition"]


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        pytest.param("delay IS NULL", "nulls", id="only nulls are asked for"),
        pytest.param("delay IS NULL AND delay < 90", "nulls", id="what the range allows"),
        pytest.param("delay > 90", "range", id="the range is elsewhere"),
        pytest.param("delay > 90 OR delay IS NULL", "nulls", id="without the null test the range would do"),
    ],
)
def test_what_spares_a_file(where: str, reason: str) -> None:
    stats = statistics({"delay": [(1, 9, 0)]})
    verdicts = views.pruning.plan.file_verdicts(plan_of("statistics"), predicate(where), stats, files_of([5]))
    assert verdicts["reason"].to_list() == [reason]


def test_files_and_bytes_add_up_by_reason() -> None:
    stats = statistics({"delay": [(1, 9, 0)] * 3})
    verdicts = views.pruning.plan.file_verdicts(
        plan_of("kept", "partition", "statistics"), predicate("delay = 77"), stats, files_of([5, 5, 5])
    )
    reasons = views.pruning.plan.explain_verdicts(verdicts)
    assert reasons.schema == views.pruning.plan.EXPLAINED
    assert reasons.rows() == [("kept", 1, 100), ("partition", 1, 200), ("range", 1, 300), ("nulls", 0, 0)]
    cost = views.pruning.plan.read_cost(verdicts)
    assert (cost.files, cost.bytes, cost.all_files, cost.all_bytes) == (1, 100, 3, 600)
    assert cost.bytes_share == pytest.approx(1 / 6)
    assert views.pruning.plan.read_cost(verdicts.clear()).files_share is None


@pytest.mark.parametrize(
    ("where", "texts"),
    [
        pytest.param("delay = 3 AND carrier = 'AA'", ["delay = 3", "carrier = 'AA'"], id="two"),
        pytest.param("delay = 3", ["delay = 3"], id="one"),
        pytest.param("delay = 3 OR carrier = 'AA'", ["(delay = 3 OR carrier = 'AA')"], id="or is one"),
        pytest.param("delay IN (1, 2) AND carrier IS NOT NULL", ["delay IN (1, 2)", "carrier IS NOT NULL"], id="in"),
        pytest.param("carrier LIKE 'A%'", ["carrier LIKE 'A%'"], id="a prefix"),
        pytest.param("delay BETWEEN 1 AND 3 AND TRUE", ["delay >= 1", "delay <= 3", "TRUE"], id="between"),
    ],
)
def test_conditions_joined_by_and_stand_apart_and_read_as_sql(where: str, texts: list[str]) -> None:
    assert [views.pruning.plan.condition_text(part) for part in conjuncts(predicate(where))] == texts


def test_parts_say_what_each_spares_and_what_nobody_can_judge() -> None:
    stats = statistics({"delay": [(1, 9, 0), (50, 60, 0)]})
    whole, one = plan_of("kept", "kept"), plan_of("statistics", "kept")
    plans = [(predicate("delay > 40"), one), (predicate("abs(delay) = 3"), whole)]
    parts = views.pruning.plan.filter_parts(
        [(where, views.pruning.plan.file_verdicts(plan, where, stats, files_of([5, 5]))) for where, plan in plans]
    )
    assert parts.schema == views.pruning.plan.PARTS
    assert parts.select("judged", "files", "bytes", "range").rows() == [(True, 1, 200, 1), (False, 2, 300, 0)]
    assert "abs" in parts["part"][1]


@pytest.mark.parametrize(
    ("where", "message", "fix"),
    [
        pytest.param(
            "delay",
            "this is a value (int32), and no condition that holds or does not",
            "compare it with something: delay is integer",
            id="a value",
        ),
        pytest.param(
            "carrier > 3",
            "this condition cannot be evaluated: cannot compare string with numeric type (i32)",
            "compare each column with a value of its own type: carrier is string",
            id="types that do not compare",
        ),
        pytest.param(
            "1 + 1",
            "this is a value (int32), and no condition that holds or does not",
            "name a column and compare it",
            id="no column",
        ),
    ],
)
def test_what_is_no_condition_is_refused_with_the_types_of_its_columns(where: str, message: str, fix: str) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        views.pruning.plan.check_condition(predicate(where), SCHEMA)
    assert (raised.value.message, raised.value.fix, raised.value.kind) == (message, fix, "bad-predicate")


def test_what_polars_refuses_is_told_without_advice_for_python() -> None:
    schema = Schema((Field("at", PrimitiveType("timestamp")),))
    with pytest.raises(InvalidRequestError) as refused:
        views.pruning.plan.check_condition(predicate("at > 'yesterday'"), schema)
    assert "string value" in refused.value.message
    assert "python" not in refused.value.message
    assert refused.value.fix is not None
    assert "at is timestamp" in refused.value.fix


def test_conditions_that_hold_or_do_not_pass() -> None:
    for where in ("delay > 3", "carrier LIKE 'A%' OR delay IS NULL", "TRUE", "abs(delay) = 3"):
        views.pruning.plan.check_condition(predicate(where), SCHEMA)


def test_the_columns_a_filter_speaks_of_are_named_as_in_statistics() -> None:
    where = (pl.col("place").struct.field("gate") > 3) & (pl.col("carrier") == "AA")
    assert views.pruning.plan.filter_columns(where, SCHEMA) == ["place.gate", "carrier"]


# -- clustering


def clustered(*ranges: Any, records: list[int | None] | None = None) -> dict[str, Any]:
    stats = statistics({"delay": list(ranges)})
    measures = views.pruning.clustering.clustering(SCHEMA, stats, files_of(records or [5] * len(ranges)))
    assert measures.schema == views.pruning.clustering.CLUSTERING
    return measures.row(0, named=True)


def test_files_apart_are_opened_one_at_a_time() -> None:
    measures = clustered((1, 9, 0), (10, 19, 0), (20, 29, 0))
    assert (measures["depth"], measures["most"], measures["reads"]) == (1.0, 1, 1.0)
    assert measures["reads_share"] == pytest.approx(1 / 3)


def test_files_over_each_other_are_opened_all() -> None:
    measures = clustered((1, 9, 0), (1, 9, 0), (1, 9, 0))
    assert (measures["depth"], measures["most"], measures["reads_share"]) == (3.0, 3, 1.0)


def test_ends_that_touch_hold_the_value_both() -> None:
    assert clustered((1, 5, 0), (5, 9, 0))["depth"] == 1.5


def test_files_that_tell_nothing_are_opened_always_and_files_of_nulls_never() -> None:
    measures = clustered((1, 9, 0), (10, 19, 0), None, (None, None, 5))
    assert (measures["ranged"], measures["unknown"], measures["all_null"]) == (2, 1, 1)
    assert measures["reads"] == 2.0
    assert measures["coverage"] == 0.75
    assert measures["null_coverage"] == 0.75


def test_without_ranges_nothing_is_known_and_not_zero() -> None:
    measures = clustered(None, None)
    assert (measures["depth"], measures["reads"], measures["reads_share"], measures["exact"]) == (
        None,
        None,
        None,
        None,
    )
    empty = views.pruning.clustering.clustering(SCHEMA, statistics({"delay": [(1, 2, 0)]}).clear(), files_of([]))
    assert empty.row(0, named=True)["coverage"] is None


@pytest.mark.parametrize(("overlap", "depth"), [(1, 1.0), (400, 400.0), (40, 40.0)])
def test_a_sample_of_the_files_estimates_how_many_ranges_overlap(overlap: int, depth: float) -> None:
    ranges = [(i // overlap * 10, i // overlap * 10 + 9, 0) for i in range(400)]
    stats, files = statistics({"delay": ranges}), files_of([5] * 400)
    sample = stats.sample(100, seed=1)
    whole, part = (views.pruning.clustering.clustering(SCHEMA, s, files).row(0, named=True) for s in (stats, sample))
    assert whole["depth"] == depth
    assert part["files"] == part["ranged"] == 400
    assert part["depth"] == pytest.approx(depth, rel=0.2)
    assert part["reads_share"] == pytest.approx(whole["reads_share"], rel=0.2)
    profile = views.pruning.clustering.depth_profile(sample, files, "delay")
    assert profile["reads"].mean() == pytest.approx(depth, rel=0.2)


def test_a_sample_of_the_files_counts_those_without_ranges_for_all() -> None:
    stats = statistics({"delay": [(1, 2, 0), None] * 50})
    part = views.pruning.clustering.clustering(SCHEMA, stats.head(10), files_of([5] * 100)).row(0, named=True)
    assert (part["ranged"], part["unknown"], part["coverage"]) == (50, 50, 0.5)
    assert part["reads"] == part["depth"] + 50


@pytest.mark.parametrize("values", [("a", "m", "n", "z"), (1.5, 2.5, 3.5, 4.5), (b"a", b"b", b"c", b"d")])
def test_values_of_every_kind_are_in_their_own_order(values: tuple[Any, ...]) -> None:
    a, b, c, d = values
    assert clustered((a, b, 0), (c, d, 0))["depth"] == 1.0
    assert clustered((a, c, 0), (b, d, 0))["depth"] == 1.5


def test_the_profile_counts_files_along_the_values() -> None:
    stats = statistics({"delay": [(1, 5, 0), (3, 9, 0), None]})
    profile = views.pruning.clustering.depth_profile(stats, files_of([5, 5, 5]), "delay")
    assert profile.schema == views.pruning.clustering.DEPTHS
    assert profile.rows() == [(0, "1", 1, 2), (1, "3", 2, 3), (2, "5", 2, 3), (3, "9", 1, 2)]
    assert views.pruning.clustering.depth_profile(stats, files_of([5]), "nobody").is_empty()


def test_the_profile_shows_bounds_of_times_as_writers_record_them() -> None:
    low, high = (datetime(2026, 7, 1, hour, 0, 0, ms, tzinfo=UTC) for hour, ms in ((3, 0), (4, 123_999)))
    stats = statistics({"at": [(low, high, 0)]}, exact=False)
    profile = views.pruning.clustering.depth_profile(stats, files_of([5]), "at")
    assert profile["value_text"].to_list() == ["2026-07-01 03:00:00", "2026-07-01 04:00:00.123000"]


def lives(*rows: tuple[int | None, int | None, int, int]) -> pl.DataFrame:
    """LIFETIMES with the range of `delay`: added, removed, least, greatest."""
    frame = pl.DataFrame(
        [(f"f{i}", None, added, removed, 1, 5) for i, (added, removed, _, _) in enumerate(rows)],
        schema=LIFETIMES,
        orient="row",
    )
    statistics_rows = [
        {"delay": {"min": a, "max": b, "null_count": 0, "exact": True, "null_count_exact": True}} for *_, a, b in rows
    ]
    return frame.with_columns(statistics=pl.Series(statistics_rows))


def line(*versions: int) -> pl.DataFrame:
    moments = [datetime(2026, 1, i + 1, tzinfo=UTC) for i in range(len(versions))]
    return pl.DataFrame(
        {"version": versions, "timestamp": moments}, schema={n: COMMITS[n] for n in ("version", "timestamp")}
    )


def test_the_course_shows_a_table_that_loses_its_order_and_finds_it_again() -> None:
    history = lives((70, None, 1, 9), (20, 90, 1, 9), (20, None, 10, 19))
    course = views.pruning.clustering.clustering_course(history, line(70, 20, 90), "delay")
    assert course.schema == views.pruning.clustering.CLUSTERING_COURSE
    assert course.select("version", "files", "reads").rows() == [
        (70, 1, 1.0),
        (20, 3, pytest.approx(5 / 3)),
        (90, 2, 1.0),
    ]


def test_the_course_of_files_whose_age_is_not_told_is_unknown() -> None:
    assert views.pruning.clustering.clustering_course(lives((None, None, 1, 9)), line(1, 2), "delay").is_empty()
    assert views.pruning.clustering.clustering_course(lives((1, None, 1, 9)), line(1, 2), "nobody").is_empty()
    assert views.pruning.clustering.clustering_course(
        lives((1, None, 1, 9)).drop("statistics"), line(1, 2), "delay"
    ).is_empty()


def test_of_a_long_history_some_versions_are_looked_at_the_ends_among_them() -> None:
    history = lives(*((v, None, v * 10, v * 10 + 9) for v in range(500)))
    frame = pl.DataFrame({"version": range(500), "timestamp": [datetime(2026, 1, 1, tzinfo=UTC)] * 500})
    course = views.pruning.clustering.clustering_course(
        history, frame.cast({"timestamp": COMMITS["timestamp"]}), "delay"
    )
    assert course.height == 40
    assert (course["version"][0], course["version"][-1]) == (0, 499)
    assert course["reads"].unique().to_list() == [1.0]


@pytest.mark.slow
def test_a_million_files_are_measured_in_seconds() -> None:
    n = 1_000_000
    low = pl.int_range(n, eager=True)
    bounds = pl.DataFrame({"min": low, "max": low + 5, "null_count": 0, "exact": True, "null_count_exact": True})
    stats = pl.DataFrame(
        {
            "_path": low.cast(pl.String),
            "_deletion_vector": pl.Series([None] * n, dtype=pl.String),
            "delay": bounds.to_struct(),
        }
    )
    files = pl.DataFrame(schema=FILES).clear(n).with_columns(path=low.cast(pl.String), records=pl.lit(10, pl.Int64))
    measures = views.pruning.clustering.clustering(SCHEMA, stats, files).row(0, named=True)
    assert measures["depth"] == pytest.approx(6, abs=0.01)
    assert views.pruning.clustering.depth_profile(stats, files, "delay").height == 240
