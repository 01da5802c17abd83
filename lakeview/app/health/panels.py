"""The health page's parts: the simulator, the findings, who can read the table, what the past costs, the doctor."""

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta

import polars as pl
import streamlit as st

from lakeview import charts, views
from lakeview.app import cache, columns, commits, uploads
from lakeview.app.components import (
    BROKEN_LINES,
    card,
    dark,
    escape,
    finding_lines,
    frame,
    grid,
    nothing,
    side_by_side,
    stack,
    tile,
)
from lakeview.app.session import OpenTable
from lakeview.app.widget_state import link_widget
from lakeview.model.findings import Finding, Severity, severity_counts

KEEP, DOCTOR = "keep", "doctor"
LONGEST_DAYS = 3650
_MAX_TOLD = 50
DAY = timedelta(days=1)
_HOURS = tuple(timedelta(hours=hours) for hours in (1, 2, 3, 6, 12))

_STATES = {
    Severity.BROKEN: "\N{MULTIPLICATION X} broken",
    Severity.ATTENTION: "\N{BLACK UP-POINTING TRIANGLE} attention",
    Severity.NOTE: "\N{MIDDLE DOT} note",
    Severity.PASS: "\N{CHECK MARK} passes",
}


def simulator_note(retention: views.retention.simulation.Retention) -> str:
    """What the simulation goes by."""
    source = "as the table says" if retention.policy.declared_text else "the engines' default"
    age = views.units.format_age(retention.policy.keep)
    return f"{retention.what} are retained for {age}, {source} · nothing is deleted here"


def has_times(retention: views.retention.simulation.Retention) -> bool:
    """Whether any version says when it was made: those of a shared table do not."""
    return not retention.has_no_times and not retention.versions.is_empty()


def simulator(now: OpenTable, retention: views.retention.simulation.Retention) -> None:
    """The slider, what VACUUM would take, two curves, the ribbon and the command."""
    curve = views.retention.simulation.retention_curve(retention)
    longest = _longest(retention)
    sentence = st.container()
    controls, curves = side_by_side()
    with controls:
        keep = _slider(retention, longest)
        done = views.retention.simulation.simulate(retention, keep)
        _figures(retention, done)
    with sentence:
        st.markdown(f"**{escape(views.retention.simulation.cleanup_sentence(done, now.latest))}**")
    with curves, grid(240, 2):
        for position, chart in enumerate(
            charts.retention.retention_curves(
                curve,
                keep / DAY,
                longest=float(longest),
                lists_all_files=retention.lists_all_files,
                dark=dark(),
            )
        ):
            with st.container():
                stack([chart], key=f"curve-{position}")
    commits.ribbon_key(views.timeline.readability.readability_runs(done.ribbon))
    stack([charts.ribbon.ribbon_chart(done.ribbon, dark=dark())], key="retention-ribbon", on_pick=commits.open_picked)
    run = views.retention.remedies.cleanup_command(now.snapshot, retention.policy, done.keep, cache.now())
    if run is not None:
        st.code(run, language=None, wrap_lines=True)
        if (warning := views.retention.remedies.cleanup_warning(now.snapshot, retention.policy, done.keep)) is not None:
            st.markdown(f":small[:orange[{escape(warning)}]]")
    if retention.bound is not None:
        st.markdown(f":small[:gray[Bytes and files are at least so many: {escape(retention.bound)}.]]")


def _slider(retention: views.retention.simulation.Retention, longest: int) -> timedelta:
    """The retention to try: in days, and where the table's own is none of whole days, in steps of which it is one."""
    word = "removed files" if retention.policy.rule == "removed files" else "versions"
    help_ = "Cleanup retains what is younger than this; at first, the table's own retention."
    own = min(retention.policy.keep, longest * DAY)
    if not own % DAY:
        days = st.slider(
            f"Keep {word} for, days", 0, longest, key=link_widget(KEEP, own // DAY, range(longest + 1)), help=help_
        )
        return int(days) * DAY
    ages = {age for age in (*(n * DAY for n in range(longest + 1)), *_HOURS) if age != own}
    steps = {views.units.format_age(age): age for age in ages} | {views.units.format_age(own): own}
    labels = sorted(steps, key=steps.__getitem__)
    return steps[
        st.select_slider(
            f"Keep {word} for", labels, key=link_widget(KEEP, views.units.format_age(own), labels), help=help_
        )
    ]


def _figures(retention: views.retention.simulation.Retention, done: views.retention.simulation.Simulation) -> None:
    freed_bytes = f"\N{GREATER-THAN OR EQUAL TO} {views.units.format_bytes(done.bytes)}"
    share = None if done.share is None else f"{views.units.format_percent(done.share)} of old"
    old = f"of {views.units.count_text(retention.files.height, 'old file')}" if retention.files.height else None
    figures = (
        ("Freed", freed_bytes if done.bytes else "nothing", share),
        ("Files", f"{done.files:,}", old),
        ("Versions lost", f"{done.versions:,}", f"{done.versions_left:,} stay"),
    )
    with grid(90, 3):
        for label, value, change in figures:
            is_loss = label == "Versions lost"
            text = views.units.UNKNOWN if done.is_unknown and not is_loss else value
            st.metric(
                label, text, change, delta_color="orange" if is_loss and done.versions else "gray", delta_arrow="off"
            )


def _longest(retention: views.retention.simulation.Retention) -> int:
    """Where the slider ends: past the last step, and past twice what the table keeps."""
    curve = views.retention.simulation.retention_curve(retention)
    last = curve["days"].max()
    steps = math.ceil(last * 1.15) if isinstance(last, float) and last <= LONGEST_DAYS else 0
    return min(max(steps, 2 * (retention.policy.keep // DAY), 14), LONGEST_DAYS)


def findings_card(every: Sequence[Finding], engines: str) -> None:
    """What is wrong or worth a note, each with its evidence, limit, effect, remedy and command in full; then what
    passes, its limit in the help of a line. `engines`: how many read the table, or cannot; "" if that is unknown."""
    with card("Findings", "; ".join(filter(None, (severity_counts(every), engines))), key="findings"):
        explained_ids: set[str] = set()
        for finding in [f for f in every if f.severity is not Severity.PASS][:_MAX_TOLD]:
            first = finding.id not in explained_ids  # limit, effect and remedy of a kind are said once
            explained_ids.add(finding.id)
            with st.container(gap="xsmall"):
                finding_lines([finding], here="health", below=_reasons if first else _no_reasons)
                if finding.command is not None:
                    st.code(finding.command, language=None, wrap_lines=True)
        finding_lines([f for f in every if f.severity is Severity.PASS], limit=_MAX_TOLD, here="health")


def _no_reasons(_: Finding) -> str:
    return ""


def _reasons(finding: Finding) -> str:
    return _in_small({"limit": finding.threshold, "effect": finding.effect, "remedy": finding.remedy})


def _rule_and_place(finding: Finding) -> str:
    place = uploads.public_text(finding.place or "")
    return _in_small({"rule": finding.rule, "where": place, "remedy": finding.remedy})


def _in_small(parts: Mapping[str, str | None]) -> str:
    words = " &ensp; ".join(f"**{name}** {escape(text)}" for name, text in parts.items() if text)
    return f":small[:gray[{words}]]" if words else ""


def findings_table(every: Sequence[Finding], *, key: str) -> None:
    """One row a finding: its state, what it says, and where; a column that is empty for all of them is left out."""
    rows = pl.DataFrame(
        {
            "state": [_STATES[f.severity] for f in every],
            "finding": [f.claim for f in every],
            "evidence": [f.evidence for f in every],
            "rule": [f.rule for f in every],
            "where": [uploads.public_text(f.place or "") for f in every],
            "remedy": [f.remedy for f in every],
        },
        schema_overrides=dict.fromkeys(("rule", "where", "remedy"), pl.String()),
    )
    some = [name for name in rows.columns if (rows[name] != "").any()]
    table_columns = {name: columns.text(name) for name in some}
    frame(rows, table_columns, key=key, row_height=BROKEN_LINES, height=12 * BROKEN_LINES, unknown="")


def history_note(retention: views.retention.simulation.Retention) -> str:
    """The bytes retained for old versions, and the live bytes."""
    if retention.has_no_times:
        return "unknown"
    old, live = views.units.format_bytes(retention.retained_bytes), views.units.format_bytes(retention.live_bytes)
    return f"{old} only for old versions, {live} live"


def history_cost(retention: views.retention.simulation.Retention, timeline: pl.DataFrame) -> pl.DataFrame:
    """Who left the bytes behind, and how often a byte was written; returns HISTORY_COST."""
    cost = views.retention.cost.history_cost(retention, timeline)
    if retention.has_no_times:
        nothing(
            "The cost of history is unknown.", "The provider of the share does not publish the timestamps of versions."
        )
        return cost
    amplification = views.retention.cost.write_amplification(timeline)
    if cost.is_empty() and amplification.written_bytes == 0:
        nothing("History costs nothing.", "No commit in the log wrote a data file.")
        return cost
    with grid(165, 3):
        ratio = "unknown" if amplification.ratio is None else f"{amplification.ratio:.2f} times"
        sides = tuple(map(views.units.format_bytes, (amplification.written_bytes, amplification.loaded_bytes)))
        tile(
            "Each byte was written",
            ratio,
            None if views.units.UNKNOWN in sides else " for ".join(sides),
            help="Bytes of data files that the commits of this branch wrote, for each byte that was loaded.",
        )
        tile(
            "Rewritten by maintenance",
            views.units.format_bytes(amplification.maintenance_bytes),
            help="Bytes that compaction and the like wrote again.",
        )
        tile(
            "Kept for old versions",
            views.units.format_bytes(retention.retained_bytes),
            views.units.count_text(retention.files.height, "file"),
            help="Files that are no longer live and that a readable version needs.",
        )
    if cost.is_empty():
        nothing("History costs nothing.", "No file is retained for old versions only.")
    else:
        stack([charts.retention.history_cost_bars(cost, dark=dark())], key="history-cost", on_pick=commits.open_picked)
    return cost


def doctor(now: OpenTable) -> list[Finding] | None:
    """The log doctor, asked by a button that carries its price; its answer stays while the link says so."""
    is_asked = st.query_params.get(DOCTOR) == "1"
    if not is_asked:
        if st.button(
            _price(now.look.frames.of_log("log files")), type="primary", icon=":material/stethoscope:", key="examine"
        ):
            st.query_params[DOCTOR] = "1"
            st.rerun()
        st.markdown(":small[:gray[The doctor reads every commit and checkpoint, and cites the rule that is broken.]]")
        return None
    with st.spinner("Reading the log"):
        findings = now.look.frames.doctor()
    problems = [f for f in findings if f.severity is not Severity.PASS]
    passes = [f for f in findings if f.severity is Severity.PASS]
    st.markdown(f"**{severity_counts(findings)}**" if problems else f"**All {len(passes):,} checks pass**")
    finding_lines(problems, limit=_MAX_TOLD, here="health", below=_rule_and_place)
    finding_lines(passes, limit=_MAX_TOLD, here="health", below=_rule_and_place)
    if rest := [*problems[_MAX_TOLD:], *passes[_MAX_TOLD:]]:
        findings_table(rest, key="doctor")
    return findings


def _price(log: pl.DataFrame) -> str:
    """What the doctor reads, from LOG_FILES: of a shared table none is known."""
    if log.is_empty():
        return "Examine what is known without a log"
    size = views.units.format_bytes(int(log["size"].sum()))
    return f"Examine the log: reads {views.units.count_text(log.height, 'file')}, {size}, and lists the folder"
