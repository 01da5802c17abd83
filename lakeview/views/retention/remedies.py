"""A purpose and a snapshot to a maintenance command to copy. Nothing is run from here."""

from datetime import UTC, date, datetime, timedelta

import polars as pl

from lakeview.model.schema import quote_name
from lakeview.model.snapshot import Snapshot
from lakeview.views.engines.rules import all_words
from lakeview.views.retention.policy import RetentionPolicy
from lakeview.views.thresholds import SAFE_RETENTION
from lakeview.views.timeline.branches import on_branch
from lakeview.views.timeline.commits import up_to, version_before
from lakeview.views.units import format_age


def cleanup_command(snapshot: Snapshot, policy: RetentionPolicy, keep: timedelta, now: datetime) -> str | None:
    """The command that removes what is older than `keep`; `now` is aware."""
    hours = -(-keep // timedelta(hours=1))  # rounded up: at least `keep` is retained
    before = (now - keep).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    versions_kept = str(max(policy.versions_kept, 1))
    return command("cleanup", snapshot, hours=str(hours), before=before, versions_kept=versions_kept)


def cleanup_warning(snapshot: Snapshot, policy: RetentionPolicy, keep: timedelta) -> str | None:
    """The warning for a cleanup that retains only `keep`; None without one."""
    files = policy.rule == "removed files"
    parts = []
    if files and keep < policy.keep:
        words = all_words().get(snapshot.format)
        switch = None if words is None else words.commands.get("cleanup_unchecked")
        refusal = f"Less than the {format_age(policy.keep)} that removed files are retained for: engines refuse it"
        parts.append(refusal if switch is None else f"{refusal} until {switch}")
    if keep < SAFE_RETENTION if files else not keep:
        parts.append("Running queries and writers lose files they need")
    return ". ".join(parts) + "." if parts else None


def keep_longer_command(snapshot: Snapshot, keep: timedelta) -> str | None:
    """The command that sets the table's retention to `keep`."""
    days = max(-(-keep // timedelta(days=1)), 1)
    return command("keep_longer", snapshot, days=str(days), milliseconds=str(keep // timedelta(milliseconds=1)))


def restore_command(snapshot: Snapshot, timeline: pl.DataFrame, anomalies: pl.DataFrame) -> str | None:
    """The command that restores the version before the open ANOMALIES that TIMELINE ends with; None without any."""
    bad = set(anomalies.filter(pl.col("repaired_by").is_null())["version"])
    line = on_branch(up_to(timeline, snapshot.version)).filter("data_change")["version"]
    good = line.filter(~line.is_in(bad))
    if line.is_empty() or good.is_empty() or line[-1] not in bad:
        return None
    first_bad = line[(line.index_of(good[-1]) or 0) + 1]
    before = version_before(timeline, first_bad)
    return None if before is None else command("restore", snapshot, version=str(before))


def partition_condition(snapshot: Snapshot, partition: str) -> str | None:
    """The SQL condition of the rows of one partition, by its text; None where a key is no column, or a value is neither
    a whole number, a date nor text without quotes."""
    rows = snapshot.files.filter(pl.col("partition_text") == partition).head(1)
    if rows.is_empty() or "partition" not in rows.columns:
        return None
    parts = []
    for key, value in rows["partition"][0].items():
        if key not in snapshot.schema:  # the key of a transform
            return None
        match value:
            case None:
                parts.append(f"{_identifier(key)} IS NULL")
            case bool():
                return None
            case int():
                parts.append(f"{_identifier(key)} = {value}")
            case str() | date() if not isinstance(value, datetime) and not set("'\"\\") & set(str(value)):
                parts.append(f"{_identifier(key)} = '{value}'")
            case _:
                return None
    return " AND ".join(parts)


def command(purpose: str, snapshot: Snapshot, **values: str) -> str | None:
    """The command for a purpose (`compact`, `apply_deletes`), filled with values; None for a format without one."""
    words = all_words().get(snapshot.format)
    template = None if words is None else words.commands.get(purpose)
    if template is None:
        return None
    is_text = template.find("'{name}'") >= 0
    name = snapshot.name or snapshot.location.rstrip("/").rpartition("/")[2] or "table"
    plain = name.replace("'", "''") if is_text else _identifier(name)
    return template.format(address=snapshot.location.replace("`", "``"), name=plain, **values)


def _identifier(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else quote_name(name)
