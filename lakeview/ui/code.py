"""A table at a version to the code that opens it elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

_LAKEVIEW = """import lakeview as lv

table = lv.open_table({address!r})
snapshot = table.snapshot({version})
rows = table.scan({version}).head(1_000).collect()"""

_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "delta": {
        "PySpark": """from lakeview.spark import session

spark = session()
rows = spark.read.format("lakeview").option("version", "{version}").load({address!r})

# with Delta's own connector
rows = spark.read.format("delta").option("versionAsOf", {version}).load({address!r})""",
        "polars": """import polars as pl

rows = pl.scan_delta({address!r}, version={version}).head(1_000).collect()""",
        "DuckDB": """INSTALL delta; LOAD delta;
SELECT * FROM delta_scan('{url}', version => {version}) LIMIT 1000;""",
    },
    "iceberg": {
        "PySpark": """rows = spark.read.format("iceberg").option("snapshot-id", "{version}").load({address!r})""",
        "polars": """import polars as pl

rows = pl.scan_iceberg({address!r}, snapshot_id={version}).head(1_000).collect()""",
        "DuckDB": """INSTALL iceberg; LOAD iceberg;
SELECT * FROM iceberg_scan('{quoted}', snapshot_from_id = {version}) LIMIT 1000;""",
    },
    "catalog": {
        "PySpark": """rows = spark.read.option("snapshot-id", "{version}").table({identifier!r})""",
        "pyiceberg": """from pyiceberg.catalog import load_catalog

rows = load_catalog({catalog!r}).load_table({name!r}).scan(snapshot_id={version}, limit=1_000).to_arrow()""",
    },
    "sharing": {
        "delta-sharing": """import delta_sharing

rows = delta_sharing.load_as_pandas({address!r}, version={version}, limit=1_000)""",
        "PySpark": """shared = spark.read.format("deltaSharing").option("responseFormat", "delta")
rows = shared.option("versionAsOf", {version}).load({address!r})""",
    },
}


def snippets(table_format: str, address: str, version: int) -> dict[str, str]:
    """Code by tool, lakeview first, that opens this version of the table."""
    _, in_catalog, named = address.partition("catalog://")
    catalog, _, name = named.partition("/")
    templates = {"lakeview": _LAKEVIEW, **_ELSEWHERE.get("catalog" if in_catalog else table_format, {})}
    if in_catalog and "%" in address:  # names that others spell in their own ways
        templates = {"lakeview": _LAKEVIEW}
    quoted = address.replace("'", "''")
    values = {
        "address": address,
        "version": version,
        "quoted": quoted,
        "catalog": catalog,
        "name": name,
        "identifier": f"{catalog}.{name}",
        "url": f"file://{quoted}" if quoted.startswith("/") else quoted,
    }
    return {tool: template.format(**values) for tool, template in templates.items()}
