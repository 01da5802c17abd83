"""Options of writes to Iceberg tables alone: where recorded prefixes lie now, and what summaries hold beside counts."""

from collections.abc import Mapping

import msgspec

from lakeview.model.errors import InvalidRequestError

SNAPSHOT_PROPERTY = "snapshot-property."
"""How options are called that go into the summary of a snapshot, as in Iceberg's own source."""

_OF_SUMMARIES = ("operation", "added-", "deleted-", "removed-", "total-", "changed-", "engine-", "spark-version",
    "spark.sql.streaming.")  # fmt: skip


def relocations(options: Mapping[str, str]) -> dict[str, str]:
    """Recorded prefixes to where they lie now. InvalidRequestError for a text that is no JSON object of texts."""
    try:
        return msgspec.json.decode(options.get("relocate", "{}"), type=dict[str, str])
    except msgspec.DecodeError as error:
        raise InvalidRequestError(
            f"relocate is no object of texts: {error}", fix='give a JSON object, such as {"s3://old": "s3://new"}'
        ) from error


def snapshot_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Properties for summaries, by name in lower case. InvalidRequestError for one that the writer itself reports."""
    properties = {n.removeprefix(SNAPSHOT_PROPERTY): v for n, v in options.items() if n.startswith(SNAPSHOT_PROPERTY)}
    if own := sorted(name for name in properties if name.startswith(_OF_SUMMARIES)):
        raise InvalidRequestError(
            f"{SNAPSHOT_PROPERTY}{own[0]} is what the writer itself reports of a snapshot",
            fix="choose another name",
            place=own[0],
        )
    return properties
