"""What goes wrong in the story: right rows to the rows a broken delivery brought."""

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from lakeview.demo.story import Fault

# The carrier whose arrivals did not come on the day that is corrected later: JetBlue, the largest at JFK.
SILENT_CARRIER = "B6"


def broken(rows: DataFrame, fault: Fault) -> DataFrame:
    """The rows as they were delivered with this fault. The same in every build."""
    return _FAULTS[fault](rows)


def _seconds(rows: DataFrame) -> DataFrame:
    """Delays times sixty, no destination for one flight in nine, and every eleventh flight twice."""
    delays = {name: f.col(name) * 60 for name in ("dep_delay", "arr_delay")}
    without = f.when(f.col("flight") % 9 == 0, f.lit(None)).otherwise(f.col("dest"))
    wrong = rows.withColumns({**delays, "dest": without})
    return wrong.unionByName(wrong.where(_every(11)))


def _no_arrivals(rows: DataFrame) -> DataFrame:
    """No arrival time, arrival delay and air time for one carrier."""
    silent = f.col("carrier") == SILENT_CARRIER
    missing: Mapping[str, Column] = {
        name: f.when(silent, f.lit(None)).otherwise(f.col(name)) for name in ("arr_time", "arr_delay", "air_time")
    }
    return rows.withColumns(dict(missing))


def _every(nth: int) -> Column:
    return f.col("flight") % nth == 0


_FAULTS: Mapping[Fault, Callable[[DataFrame], DataFrame]] = {
    Fault.SECONDS: _seconds,
    Fault.NO_ARRIVALS: _no_arrivals,
}
