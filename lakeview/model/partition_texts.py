"""Values inside a partition's text, `month=3/path=a%2Fb`: a slash stands between keys and in no value.

Folders of Hive escape a slash likewise. `%` itself stays as it is, but in front of `2F` and `25`. `null` is the value
null; a text of these four letters stands in quotes, `month="null"`, wherever it is shown.
"""

import re

import polars as pl

SLASH, PERCENT = "%2F", "%25(2F|25)"
"""Regular expressions, of polars and of a browser, of an escaped slash, and of an escaped percent sign, whose group is
what follows it."""


NULL = "null"
"""The value null as it stands in a partition's text."""

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value null as Hive writes it in the name of a partition's folder."""

_LIKE_NULL = '^("*null"*)$'


def escape(values: pl.Expr) -> pl.Expr:
    """Values as they stand in a partition's text, null as NULL: no two share one."""
    texts = values.str.replace_all("%(2F|25)", "%25$1").str.replace_all("/", SLASH, literal=True)
    return texts.str.replace(_LIKE_NULL, '"$1"').fill_null(NULL)


def unescape(texts: pl.Expr) -> pl.Expr:
    """The values that `escape` made these of; NULL stays, and so do the quotes of texts like it."""
    return texts.str.replace_all(SLASH, "/", literal=True).str.replace_all(PERCENT, "%$1")


def unescape_text(text: str) -> str:
    """A partition's text with its values as `unescape` gives them."""
    return re.sub(PERCENT, r"%\1", text.replace(SLASH, "/"))
