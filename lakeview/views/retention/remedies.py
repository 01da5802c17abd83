"""A purpose and a snapshot to a command that somebody can copy. Nothing is ever run from here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lakeview.model.snapshot import Snapshot
from lakeview.views.engines.rules import format_words
from lakeview.views.retention.policy import SHORTEST_KEPT, RetentionPolicy
from lakeview.views.units import format_age


def command(purpose: str, snapshot: Snapshot) -> str | None:
    """The command for `compact` or `apply_deletes`; None for a format without one."""
    return _filled(purpose, snapshot)


def clean_up_command(snapshot: Snapshot, policy: RetentionPolicy, keep: timedelta, now: datetime) -> str | None:
    """The command that cleans up what is older than `keep`; `now` is aware."""
    hours = -(-keep // timedelta(hours=1))  # rounded up: never less is kept than was asked for
    before = (now - keep).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    versions_kept = str(max(policy.versions_kept, 1))
    return _filled("clean_up", snapshot, hours=str(hours), before=before, versions_kept=versions_kept)


def clean_up_warning(snapshot: Snapshot, policy: RetentionPolicy, keep: timedelta) -> str | None:
    """What goes wrong with a clean-up that keeps so little; None where nothing does."""
    files = policy.rule == "removed files"
    parts = []
    if files and keep < policy.keep:
        words = format_words(snapshot.format)
        switch = None if words is None else words.commands.get("clean_up_unchecked")
        said = f"Less than the {format_age(policy.keep)} that removed files are kept for: engines refuse it"
        parts.append(said if switch is None else f"{said} until {switch}")
    if keep < SHORTEST_KEPT if files else not keep:
        parts.append("Queries and writers that are still running lose files they need")
    return ". ".join(parts) + "." if parts else None


def keep_longer_command(snapshot: Snapshot, keep: timedelta) -> str | None:
    """The command that makes `keep` the table's retention from now on."""
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
