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
    "sharing": {
        "delta-sharing": """import delta_sharing

rows = delta_sharing.load_as_pandas({address!r}, version={version}, limit=1_000)""",
        "PySpark": """shared = spark.read.format("deltaSharing").option("responseFormat", "delta")
rows = shared.option("versionAsOf", {version}).load({address!r})""",
    },
}


def snippets(table_format: str, address: str, version: int) -> dict[str, str]:
    """Code by tool, lakeview first, that opens this version of the table."""
    templates = {"lakeview": _LAKEVIEW, **_ELSEWHERE.get(table_format, {})}
    quoted = address.replace("'", "''")
    values = {
        "address": address,
        "version": version,
        "quoted": quoted,
        "url": f"file://{quoted}" if quoted.startswith("/") else quoted,
    }
    return {tool: template.format(**values) for tool, template in templates.items()}
