"""`catalog://prod/sales.orders` to the names it stands for, and back.

The host names a configured catalog, never a server, so that no address leads anywhere the operator did not allow.
Levels of a namespace and the table are separated by dots, as Iceberg's identifiers are; a dot, a slash or a percent
sign that is part of a name is percent-encoded.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from lakeview.model.errors import InvalidRequestError

_FORM = re.compile(r"^catalog:/{0,2}([^/?#]*)/?([^/?#]*)/?$", re.IGNORECASE)
_SCHEME = re.compile(r"^catalog:", re.IGNORECASE)
_ENCODED = re.compile(r"[%./?#\\\x00-\x20\x7f]")
_FIX = "write catalog://<catalog>/<namespace>.<table>, with %2E for a dot inside a name"


@dataclass(frozen=True, slots=True)
class CatalogAddress:
    """A catalog, a namespace in it or a table. `names`: of the levels from the outermost on; empty for the catalog."""

    catalog: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"catalog://{_encode(self.catalog)}/{dotted_name(self.names)}"


def is_catalog_address(address: str) -> bool:
    """Whether an address means a catalog or something in one."""
    return _SCHEME.match(address) is not None


def dotted_name(names: tuple[str, ...]) -> str:
    """Names as an address spells them."""
    return ".".join(_encode(name) for name in names)


def parse_address(address: str) -> CatalogAddress:
    """What an address names. InvalidRequestError if it names nothing."""
    match = _FORM.match(address)
    if match is None:
        raise InvalidRequestError(f"{address} names no table of a catalog", fix=_FIX, place=address)
    catalog, path = unquote(match[1]), match[2]
    names = tuple(unquote(name) for name in path.split(".")) if path else ()
    if not catalog or not all(names):
        missing = "no catalog" if not catalog else "an empty level of a namespace"
        raise InvalidRequestError(f"{address} names {missing}", fix=_FIX, place=address)
    return CatalogAddress(catalog, names)


def _encode(name: str) -> str:
    return _ENCODED.sub(lambda match: f"%{ord(match[0]):02X}", name)
