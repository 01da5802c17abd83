"""A purpose and a snapshot to a maintenance command to copy. Nothing is run from here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lakeview.model.snapshot import Snapshot
from lakeview.views.engines.rules import format_words
from lakeview.views.retention.policy import RetentionPolicy
from lakeview.views.thresholds import SAFE_RETENTION
from lakeview.views.units import format_age


def command(purpose: str, snapshot: Snapshot) -> str | None:
    """The command for `compact` or `apply_deletes`; None for a format without one."""
    return _filled(purpose, snapshot)


def cleanup_command(snapshot: Snapshot, policy: RetentionPolicy, keep: timedelta, now: datetime) -> str | None:
    """The command that removes what is older than `keep`; `now` is aware."""
    hours = -(-keep // timedelta(hours=1))  # rounded up: at least `keep` is retained
    before = (now - keep).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    versions_kept = str(max(policy.versions_kept, 1))
    return _filled("cleanup", snapshot, hours=str(hours), before=before, versions_kept=versions_kept)


def cleanup_warning(snapshot: Snapshot, policy: RetentionPolicy, keep: timedelta) -> str | None:
    """The warning for a cleanup that retains only `keep`; None without one."""
    files = policy.rule == "removed files"
    parts = []
    if files and keep < policy.keep:
        words = format_words(snapshot.format)
        switch = None if words is None else words.commands.get("cleanup_unchecked")
        refusal = f"Less than the {format_age(policy.keep)} that removed files are retained for: engines refuse it"
        parts.append(refusal if switch is None else f"{refusal} until {switch}")
    if keep < SAFE_RETENTION if files else not keep:
        parts.append("Running queries and writers lose files they need")
    return ". ".join(parts) + "." if parts else None


def keep_longer_command(snapshot: Snapshot, keep: timedelta) -> str | None:
    """The command that sets the table's retention to `keep`."""
    days = max(-(-keep // timedelta(days=1)), 1)
    return _filled("keep_longer", snapshot, days=str(days), milliseconds=str(keep // timedelta(milliseconds=1)))


def _filled(purpose: str, snapshot: Snapshot, **values: str) -> str | None:
    words = format_words(snapshot.format)
    template = None if words is None else words.commands.get(purpose)
    if template is None:
        return None
    quoted = template.find("'{name}'") >= 0
    name = snapshot.name or snapshot.location.rstrip("/").rpartition("/")[2] or "table"
    plain = name.replace("'", "''") if quoted else _identifier(name)
    return template.format(address=snapshot.location.replace("`", "``"), name=plain, **values)


def _identifier(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else "`" + name.replace("`", "``") + "`"
