"""A catalog that can be asked: which tables it holds, and where one's metadata lies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from lakeview.iceberg.catalog.address import CatalogAddress, dotted_name
from lakeview.iceberg.catalog.connection import connected_catalog
from lakeview.iceberg.catalog.refusals import Refusal, as_our_error, foreign_errors, refusal
from lakeview.iceberg.catalog.stores import store_options
from lakeview.model import limits
from lakeview.model.errors import (
    InvalidRequestError,
    LakeviewError,
    NotATableError,
    StoreUnavailableError,
    UnsupportedTableError,
)
from lakeview.storage.retries import with_retries

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

T = TypeVar("T")

_ATTEMPTS = 3
_PUBLIC = ("type", "uri", "warehouse", "scope")
"""Properties whose values may be shown."""


@dataclass(frozen=True, slots=True)
class TableLocation:
    """Where a table's current metadata file lies, as recorded, and options of its store that the catalog gave."""

    metadata: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)


class CatalogClient:
    """One catalog. Safe to use from several threads; shows none of its properties.

    Each method raises StoreUnavailableError for a catalog that does not answer, AccessDeniedError for credentials that
    it does not take, InvalidRequestError for answers that no catalog gives, MissingExtraError.
    """

    def __init__(self, name: str, properties: Mapping[str, Any]) -> None:
        self.name = name
        self._secrets = [part for k, v in properties.items() if k not in _PUBLIC for part in _parts(v)]
        self._lock = threading.Lock()
        self._catalog = self._ask(lambda: connected_catalog(name, properties))

    def __repr__(self) -> str:
        return f"CatalogClient({self.name!r})"

    def locate(self, address: CatalogAddress) -> TableLocation:
        """Where a table's current metadata file lies; one request.

        NotATableError if there is no such table or namespace, UnsupportedTableError for a view and for a table that is
        not Iceberg's.
        """
        return self._ask_about(address, lambda: _locate(self._catalog, address.names))

    @property
    def takes_commits(self) -> bool:
        """Whether tables are changed by it: REST catalogs are, those that keep only locations are read."""
        return hasattr(self._catalog, "change")

    def commit(self, address: CatalogAddress, change: Mapping[str, Any]) -> bool:
        """Have it change a table, in the words of the specification (updateTable); false if a requirement is not met.

        Asked once: StoreUnavailableError where the change may have been made or not. NotATableError, and
        AccessDeniedError where it may be read alone.
        """
        change_table = getattr(self._catalog, "change")  # noqa: B009  # see takes_commits
        return self._ask_about(address, lambda: bool(change_table(address.names, change)), attempts=1)

    def _ask_about(self, address: CatalogAddress, action: Callable[[], T], attempts: int = _ATTEMPTS) -> T:
        with self._question(_ATTEMPTS * limits.CATALOG_ANSWER_SECONDS):
            try:
                return self._ask(action, attempts)
            except _AboutNamesError as error:
                why = error.refusal
            raise self._missing_table(address, why)

    def tables(self, below: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        """The names of all tables in a namespace and those inside it, or in the whole catalog, in order.

        Two requests for each namespace. NotATableError if there is no such namespace.
        """
        with self._question(limits.CATALOG_LISTING_SECONDS):
            try:
                names = self._table_names(below) if below else []
            except _AboutNamesError:
                raise _no_namespace(CatalogAddress(self.name, below)) from None
            for namespace in self._inside(below):
                try:
                    names += self._table_names(namespace)
                except _AboutNamesError:
                    self._require_dropped(namespace)
            return sorted(names)

    def close(self) -> None:
        """Give back its connections."""
        self._catalog.close()

    @contextmanager
    def _question(self, seconds: float) -> Iterator[None]:
        """One question at a time; answers of a REST catalog to it may take so long together."""
        with self._lock:
            if (allowance := getattr(self._catalog, "allowance", None)) is not None:
                allowance.renew(seconds)
            yield

    def _table_names(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        names = self._ask(lambda: self._catalog.list_tables(namespace))
        return [name for name in names if name[: len(namespace)] == namespace]

    def _inside(self, below: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Every namespace inside another, or of the catalog, level by level."""
        waiting = self._children(below)
        count = 0
        while waiting:
            count += len(waiting)
            if count > limits.CATALOG_NAMESPACES:
                raise UnsupportedTableError(
                    f"the catalog {self.name} holds more than {limits.CATALOG_NAMESPACES:,} namespaces",
                    fix="look into one of them: catalog://<catalog>/<namespace>",
                    kind="too-large",
                )
            yield from waiting
            waiting = [child for namespace in waiting for child in self._children(namespace)]

    def _children(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        from pyiceberg.exceptions import BadRequestError

        def ask() -> list[tuple[str, ...]]:
            try:
                return self._catalog.list_namespaces(namespace)
            except (NotImplementedError, BadRequestError):  # what a catalog without levels says of a namespace
                if not namespace:
                    raise
                return []

        try:
            children = self._ask(ask)
        except _AboutNamesError:
            if not namespace:
                raise _no_top_level(self.name) from None
            self._require_dropped(namespace)
            return []
        # some servers list the whole top level again, whatever namespace they are asked about
        depth = len(namespace)
        return sorted({tuple(n) for n in children if len(n) == depth + 1 and tuple(n[:depth]) == namespace})

    def _require_dropped(self, namespace: tuple[str, ...]) -> None:
        """InvalidRequestError for a namespace that was listed and is said not to be there, if it is listed still: then
        it was not dropped meanwhile, and its tables would be missing without a word."""
        if namespace in self._children(namespace[:-1]):
            raise InvalidRequestError(
                f"the catalog {self.name} lists the namespace {dotted_name(namespace)}, and answers that there is none",
                fix="open its tables by their names, or ask the operator of the catalog",
                place=str(CatalogAddress(self.name, namespace)),
                kind="bad-catalog",
            )

    def _ask(self, action: Callable[[], T], attempts: int = _ATTEMPTS) -> T:
        return with_retries(lambda: self._ask_once(action), attempts, StoreUnavailableError)

    def _ask_once(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except LakeviewError:
            raise
        except foreign_errors(self.name) as error:
            why = refusal(error)
            if why in (Refusal.NO_TABLE, Refusal.NO_NAMESPACE, Refusal.NOT_ICEBERG):
                raise _AboutNamesError(why) from None
            raise as_our_error(error, self.name, self._secrets) from None  # their texts may hold credentials

    def _missing_table(self, address: CatalogAddress, why: Refusal) -> LakeviewError:
        """Why there is no table of a name; asks the catalog what there is instead."""
        if why is Refusal.NOT_ICEBERG:
            return UnsupportedTableError(
                f"{address} is in the catalog, but it is no Iceberg table",
                fix="open it by its folder, if it is a Delta table",
                place=str(address),
                kind="unsupported-format",
            )
        if self._is(address.names, "view_exists"):
            return UnsupportedTableError(
                f"{address} is a view, which has no files of its own",
                fix="open the tables that it is made of",
                place=str(address),
                kind="view",
            )
        if not self._is(address.names[:-1], "namespace_exists"):
            return _no_namespace(CatalogAddress(self.name, address.names[:-1]))
        return NotATableError(
            f"{address} is not there: the catalog holds no table of this name",
            fix=f"choose one of the tables below {CatalogAddress(self.name, address.names[:-1])}",
            place=str(address),
        )

    def _is(self, names: tuple[str, ...], method: str) -> bool:
        """What a catalog says to such a question; where it cannot say, the answer stays general."""

        def ask() -> bool:
            with suppress(NotImplementedError):
                return bool(getattr(self._catalog, method)(names))
            return method == "namespace_exists"

        with suppress(_AboutNamesError):
            return self._ask(ask)
        return False


class _AboutNamesError(Exception):
    """A catalog answered, and has no such table, no such namespace, or no Iceberg table there."""

    def __init__(self, why: Refusal) -> None:
        super().__init__(why.name)
        self.refusal = why


def _locate(catalog: Catalog, names: tuple[str, ...]) -> TableLocation:
    from lakeview.iceberg.catalog.locating import LocatedSignal

    ask = getattr(catalog, "locate", None)
    if ask is not None:
        table = ask(names)
        place = table.metadata_location or ""
        return TableLocation(place, store_options(place, {**catalog.properties, **table.store_properties()}))
    try:
        place = catalog.load_table(names).metadata_location
    except LocatedSignal as signal:
        place = signal.location
    return TableLocation(place, store_options(place, catalog.properties))


def _no_top_level(catalog: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the catalog {catalog} has no list of namespaces where it was asked",
        fix="check its uri and warehouse in the configuration",
        place=catalog,
        kind="bad-catalog",
    )


def _no_namespace(address: CatalogAddress) -> NotATableError:
    return NotATableError(
        f"{address} is not there: the catalog holds no such namespace",
        fix=f"choose from what lies below {CatalogAddress(address.catalog)}",
        place=str(address),
        kind="unknown-namespace",
    )


def _parts(value: object) -> list[str]:
    """The texts in a property that are secrets: whole, and where it is `id:secret`, each."""
    if isinstance(value, dict):
        return [part for v in value.values() for part in _parts(v)]
    text = str(value)
    return [part for part in (text, *text.split(":")) if len(part) > 3]
