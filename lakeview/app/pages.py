"""The pages by name: file, title, the question each answers, icon and group. Findings and links name pages so."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One page. `group` is its heading in the sidebar, "" above all groups; `file` is relative to app.py; `of_table`:
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

_GROUPS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "": {"start": ("Start", "", "home")},
    "Understand": {
        "overview": ("Overview", "Is this table all right?", "dashboard"),
        "timeline": ("Timeline", "What happened, when, and by whom?", "show_chart"),
        "compare": ("Compare", "What changed between two versions?", "compare_arrows"),
        "schema": ("Schema", "What are the columns, and since when?", "account_tree"),
    },
    "Layout": {
        "files": ("Files", "Is it slow because of how it lies on disk?", "draft"),
        "partitions": ("Partitions", "Is every part there, whole, and on time?", "grid_view"),
        "pruning": ("Pruning", "Which files would a filter read, and why are the others skipped?", "filter_alt"),
    },
    "Data": {
        "data": ("Data", "What do the rows look like, now or at any moment?", "table_rows"),
        "quality": ("Quality", "Is the data normal, and since when?", "rule"),
    },
    "Operate": {
        "health": (
            "Health and retention",
            "What is wrong, what would VACUUM or snapshot expiration remove, and who can still read it?",
            "health_and_safety",
        ),
        "sharing": ("Sharing", "What is shared with me, what do I share, and who read what?", "share"),
        "lake": ("Lake", "Which of all these tables needs attention?", "water"),
        "pipelines": ("Pipelines", "What ran, what did it make, and which rows failed?", "conversion_path"),
    },
}
"""Title, question and icon of each page, by group and name; a group's pages lie in the folder of its name."""

_WITHOUT_TABLE = ("start", "sharing", "lake", "pipelines")

PAGES: dict[str, PageEntry] = {
    name: PageEntry(
        group,
        f"pages/{group.lower() or 'start'}/{name}.py",
        title,
        question,
        f":material/{icon}:",
        default=name == "start",
        of_table=name not in _WITHOUT_TABLE,
    )
    for group, pages in _GROUPS.items()
    for name, (title, question, icon) in pages.items()
}
