"""Options of Spark that are storage options of a table, `storage.<name>`, and back."""

from collections.abc import Mapping

from lakeview.storage.access import StoreAccess
from lakeview.storage.options import COORDINATOR, option_text, option_value

STORAGE_PREFIX = "storage."
"""What stands before the name of a storage option."""


def access_of(options: Mapping[str, str]) -> StoreAccess:
    """The storage options among options of Spark. InvalidRequestError for a value that begins as JSON and is none."""
    names = [name for name in options if name.startswith(STORAGE_PREFIX)]
    return StoreAccess({name.removeprefix(STORAGE_PREFIX): option_value(name, options[name]) for name in names})


def as_spark_options(access: StoreAccess, *, writing: bool = False) -> dict[str, str]:
    """The options of Spark that `access_of` reads, for reading or writing a table: a commit coordinator is of use to
    writers alone."""
    values = {name: value for name, value in access.options.items() if writing or name != COORDINATOR}
    return {f"{STORAGE_PREFIX}{name}": option_text(name, value) for name, value in values.items()}
