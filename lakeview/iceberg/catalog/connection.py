"""A catalog's name and properties to a connection: whose properties hold, and what pyiceberg makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lakeview.iceberg.catalog.refusals import foreign_errors
from lakeview.model.config import Config
from lakeview.model.errors import InvalidRequestError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog


def catalog_properties(name: str, properties: Mapping[str, Any] | None, config: Config) -> Mapping[str, Any]:
    """A catalog's properties: of the call, else of lakeview's configuration, else of pyiceberg's own.

    InvalidRequestError if none of them has a catalog of this name.
    """
    own = config.catalogs.get(name, {})
    foreign = foreign_errors(name)
    try:
        from pyiceberg.utils.config import Config as PyicebergConfig  # the environment and ~/.pyiceberg.yaml as of now

        theirs = PyicebergConfig().get_catalog_config(name) or {}
    except foreign:
        raise InvalidRequestError(
            "pyiceberg's configuration cannot be read", fix="correct .pyiceberg.yaml and PYICEBERG_CATALOG__*"
        ) from None
    all_properties = {**theirs, **own, **(properties or {})}
    if not all_properties:
        raise InvalidRequestError(
            f"no catalog is configured by the name {name}",
            fix=f"set PYICEBERG_CATALOG__{name.upper()}__URI, or [catalogs.{name}] in the file of LAKEVIEW_CONFIG",
            place=name,
            kind="unknown-catalog",
        )
    return all_properties


def connected_catalog(name: str, properties: Mapping[str, Any]) -> Catalog:
    """pyiceberg's catalog, which opens no file and alters no table. ValueError for properties that are wrong."""
    from pyiceberg.catalog import CatalogType, infer_catalog_type, load_catalog

    options = dict(properties)
    kind = str(options.get("type", "")).lower()
    if not kind and "py-catalog-impl" not in options:
        catalog_type = infer_catalog_type(name, options)
        kind = catalog_type.value if catalog_type else ""
    if kind == CatalogType.REST.value:
        from lakeview.iceberg.catalog.rest import LocatingRestCatalog

        if not options.get("uri"):
            raise ValueError("a REST catalog has a uri")
        options["uri"] = str(options["uri"])
        if "credential" in options:  # where the specification puts it; pyiceberg takes the same place, with a warning
            options.setdefault("oauth2-server-uri", f"{options['uri'].rstrip('/')}/v1/oauth/tokens")
        return LocatingRestCatalog(name, **options)
    if kind == CatalogType.SQL.value:
        options = _for_reading(options)
    # what opens files is ours: it opens none, and says which one would have been opened
    try:
        return load_catalog(name, **{**options, "py-io-impl": "lakeview.iceberg.catalog.locating.LocatingIO"})
    except TypeError:  # pyiceberg hands properties on unchecked: a number that is text comes back as this
        raise ValueError("a property of another type than it must be") from None


def _for_reading(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties of a SQL catalog by which pyiceberg creates and alters no tables, and SQLite no file."""
    from sqlalchemy.engine import make_url

    options = {k: v for k, v in properties.items() if k != "schema_version"} | {"init_catalog_tables": "false"}
    url = make_url(str(options.get("uri", "")))
    if url.get_backend_name() == "sqlite" and url.database and not url.database.startswith((":memory:", "file:")):
        url = url.set(database=f"file:{quote(url.database)}").update_query_dict({"mode": "ro", "uri": "true"})
        options["uri"] = url.render_as_string(hide_password=False)
    return options
