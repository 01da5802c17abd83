"""Table properties: names that some engine knows, and values that it takes."""

from collections.abc import Iterator

from lakeview.delta.lint.facts import LogFacts
from lakeview.delta.lint.report import finding, some
from lakeview.delta.properties import FEATURE_VALUES, PROPERTIES, is_known, nearest
from lakeview.model.findings import Finding, Severity
from lakeview.model.printable import count_text


def names(facts: LogFacts) -> Iterator[Finding]:
    """`delta.` properties that no engine knows: most are slips of the pen, and do nothing."""
    unknown = [k for k in facts.properties if k.startswith("delta.") and not is_known(k)]
    slips = {k: near for k in unknown if (near := nearest(k)) is not None}
    if slips:
        yield finding(
            "property-misspelt",
            Severity.ATTENTION,
            f"{count_text(len(slips), 'property is', 'properties are')} misspelt and without effect",
            some([f"{k} (meant: {near})" for k, near in slips.items()]),
            section="Table Properties",
            place="metaData.configuration",
            remedy="set the property by its right name, and unset this one",
            page="overview",
        )
    rest = [k for k in unknown if k not in slips]
    if rest:
        yield finding(
            "property-unknown",
            Severity.NOTE,
            f"{count_text(len(rest), 'delta property is', 'delta properties are')} known to no engine",
            some(rest),
            section="Table Properties",
            place="metaData.configuration",
            page="overview",
        )


def values(facts: LogFacts) -> Iterator[Finding]:
    """Known properties with values that no engine takes."""
    wrong = [f"{k} = {v}" for k, v in facts.properties.items() if k in PROPERTIES and PROPERTIES[k].parse(v) is None]
    wrong += [
        f"{k} = {v}"
        for k, v in facts.properties.items()
        if k.startswith("delta.feature.") and v.lower() not in FEATURE_VALUES
    ]
    if wrong:
        yield finding(
            "property-value-refused",
            Severity.ATTENTION,
            f"{count_text(len(wrong), 'property has a value', 'properties have values')} that engines refuse or ignore",
            some(wrong),
            section="Table Properties",
            place="metaData.configuration",
            remedy="set a value of the right kind",
            page="overview",
        )
