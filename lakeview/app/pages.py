"""The pages by name: file, title, the question each answers, icon and group. Findings and links name pages so."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One page. `file` is relative to app.py; `group` is its heading in the sidebar, "" above all groups; `of_table`:
    whether it needs a table to be chosen."""

    group: str
    file: str
    title: str
    question: str
    icon: str
    default: bool = False
    of_table: bool = True


QUALITY_WHOLE_TABLE = "Whole table"
"""The quality page's tab that other pages link to."""

SHARING_PROFILE = "profile-file"
"""The parameter of the sharing page's link that holds the address of a profile."""

PAGES: dict[str, PageEntry] = {
    "start": PageEntry("", "pages/start/start.py", "Start", "", ":material/home:", default=True, of_table=False),
    "overview": PageEntry(
        "Understand",
        "pages/understand/overview.py",
        "Overview",
        "Is this table all right?",
        ":material/dashboard:",
    ),
    "timeline": PageEntry(
        "Understand",
        "pages/understand/timeline.py",
        "Timeline",
        "What happened, when, and by whom?",
        ":material/show_chart:",
    ),
    "compare": PageEntry(
        "Understand",
        "pages/understand/compare.py",
        "Compare",
        "What changed between two versions?",
        ":material/compare_arrows:",
    ),
    "schema": PageEntry(
        "Understand",
        "pages/understand/schema.py",
        "Schema",
        "What are the columns, and since when?",
        ":material/account_tree:",
    ),
    "files": PageEntry(
        "Layout",
        "pages/layout/files.py",
        "Files",
        "Is it slow because of how it lies on disk?",
        ":material/draft:",
    ),
    "partitions": PageEntry(
        "Layout",
        "pages/layout/partitions.py",
        "Partitions",
        "Is every part there, whole, and on time?",
        ":material/grid_view:",
    ),
    "pruning": PageEntry(
        "Layout",
        "pages/layout/pruning.py",
        "Pruning",
        "Which files would a filter read, and why are the others skipped?",
        ":material/filter_alt:",
    ),
    "data": PageEntry(
        "Data",
        "pages/data/data.py",
        "Data",
        "What do the rows look like, now or at any moment?",
        ":material/table_rows:",
    ),
    "quality": PageEntry(
        "Data",
        "pages/data/quality.py",
        "Quality",
        "Is the data normal, and since when?",
        ":material/rule:",
    ),
    "health": PageEntry(
        "Operate",
        "pages/operate/health.py",
        "Health and retention",
        "What is wrong, what would VACUUM or snapshot expiration remove, and who can still read it?",
        ":material/health_and_safety:",
    ),
    "sharing": PageEntry(
        "Operate",
        "pages/operate/sharing.py",
        "Sharing",
        "What is shared with me, what do I share, and who read what?",
        ":material/share:",
        of_table=False,
    ),
    "lake": PageEntry(
        "Operate",
        "pages/operate/lake.py",
        "Lake",
        "Which of all these tables needs attention?",
        ":material/water:",
        of_table=False,
    ),
    "pipelines": PageEntry(
        "Operate",
        "pages/operate/pipelines.py",
        "Pipelines",
        "What ran, what did it make, and which rows failed?",
        ":material/conversion_path:",
        of_table=False,
    ),
}
