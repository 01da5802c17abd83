"""Files: does the file layout make it slow? Sizes in doubling bins, and every file with its statistics."""

from lakeview import charts, views
from lakeview.app import answers, downloads, errors, metadata_panels, session
from lakeview.app.answers import file_layout
from lakeview.app.components import card, dark, finding_lines, first_line, nothing, stack
from lakeview.app.files import layout, panels
from lakeview.app.row_links import pick_state

now = session.current()
live = now.snapshot.files

if live.is_empty():
    with card():
        nothing(
            views.first_lines.empty_line(now.version, "data files"),
            "Nothing was written yet, or everything was removed.",
            "timeline",
            "See what happened",
        )
else:
    findings = answers.layout_findings(now, "files")
    whole = file_layout(now)
    first_line(views.first_lines.files_line(findings, live.height, now.snapshot.size_bytes, whole.facts.ideal_files))
    if findings:
        with card(key="files-findings"):
            finding_lines(findings, here="files")
    choice = panels.filters(now, whole)
    files = panels.passing_files(now, choice)
    bins = panels.bins(now, whole, choice)
    with card("Sizes, doubling bins", views.files.sizes.small_files_note(bins), key="sizes-card"):
        is_finding = any(finding.id == "small-files" for finding in findings)
        histogram = charts.files.size_histogram(bins, selection=choice.sizes, is_finding=is_finding, dark=dark())
        stack(histogram, key="sizes-picture", on_pick=pick_state("sizes", "label"))  # narrows the listing to a bin
    panels.tiles(whole.facts if choice.is_any else views.files.sizes.file_facts(files, now.snapshot.delete_files))
    with card(key="files-card"):
        page = panels.listing(now, whole, choice, files)
    downloads.offer("files on this page", page)
    downloads.offer("all files" if choice.is_any else "files that pass the filters", files)
    layout.detail(now, page)

with errors.messages(here="files"):
    metadata_panels.delete_files(now)
    metadata_panels.manifests(now)
