"""What a page shows to the code that shows it elsewhere: its own question in lakeview, its rows in other tools."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from lakeview.model.errors import InvalidRequestError
from lakeview.model.table import Table
from lakeview.predicates import predicate
from lakeview.predicates.condition import translate

ROWS = 1_000


@dataclass(frozen=True, slots=True)
class View:
    """What is looked at: a page of a table at a version; `where` the filter typed there, `limit` its rows at most."""

    page: str
    table_format: str
    address: str
    version: int
    base: int | None = None
    where: str | None = None
    limit: int = ROWS


_OPEN = """import lakeview as lv

table = lv.open_table({address})
snapshot = table.snapshot({version})
"""

_LOOK = "look = lv.inspect(table, {version})\n"

_IMPORTS = {"pl.": "import polars as pl"}

_ROWS = "rows = table.scan({version}){filtered}.head({limit}).collect()"

_QUESTIONS: Mapping[str, str] = {
    "overview": "findings = look.health()",
    "timeline": """timeline = look.timeline()
commit = table.commit({version})""",
    "compare": """before = table.snapshot({base})
differences = look.compare({base}, {version})
changes = lv.views.diff_schemas(before.schema, snapshot.schema)""",
    "schema": """columns = look.columns().tree
changes = look.schema_changes()""",
    "files": """files = look.files()
sizes = lv.views.files.sizes.file_sizes(files)""",
    "partitions": """sizes = look.partitions()
arrivals = look.arrivals()""",
    "pruning": """plan = look.pruning({condition})
reasons = plan.group_by("kept", "reason").len()""",
    "data": _ROWS,
    "quality": """loads = look.quality()
findings = look.quality_findings()""",
    "health": """findings = look.health()
after_vacuum = look.retention(days=7)
engines = look.engines()
problems = table.check()""",
}
"""What each page asks, after the table was opened; a page that is not here shows rows."""

_SPARK = """from lakeview.spark import session

spark = session()
rows = spark.read.format("lakeview").option("version", "{version}").load({address}){spark_where}.limit({limit})
"""

_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "delta": {
        "PySpark": _SPARK
        + """
# with Delta's own connector
rows = spark.read.format("delta").option("versionAsOf", {version}).load({address}){spark_where}.limit({limit})""",
        "polars": """import polars as pl

rows = pl.scan_delta({address}, version={version}){filtered}.head({limit}).collect()""",
        "DuckDB": """INSTALL delta; LOAD delta;
SELECT * FROM delta_scan('{url}', version => {version}){sql_where} LIMIT {limit};""",
    },
    "iceberg": {
        "PySpark": _SPARK
        + """
# with Iceberg's own connector
rows = spark.read.format("iceberg").option("snapshot-id", "{version}").load({address}){spark_where}.limit({limit})""",
        "polars": """import polars as pl

rows = pl.scan_iceberg({metadata}, snapshot_id={version}){filtered}.head({limit}).collect()""",
        "DuckDB": """INSTALL iceberg; LOAD iceberg;
SELECT * FROM iceberg_scan('{quoted}', snapshot_from_id = {version}){sql_where} LIMIT {limit};""",
    },
    "catalog": {
        "PySpark": """shown = spark.read.option("snapshot-id", "{version}").table({identifier})
rows = shown{spark_where}.limit({limit})""",
        "pyiceberg": """from pyiceberg.catalog import load_catalog

rows = load_catalog({catalog}).load_table({name}).scan(snapshot_id={version}, limit={limit}).to_arrow()""",
    },
    "sharing": {
        "delta-sharing": """import delta_sharing

rows = delta_sharing.load_as_pandas({address}, version={version}, limit={limit})""",
        "PySpark": """shared = spark.read.format("deltaSharing").option("responseFormat", "delta")
rows = shared.option("versionAsOf", {version}).load({address}){spark_where}.limit({limit})""",
    },
}


def snippets(view: View, metadata: str | None = None) -> dict[str, str]:
    """Code by tool, lakeview first. In lakeview it is the page's question, elsewhere the rows of this version.

    `metadata`: the file that describes the version, for tools that want it named; None: they find it at the address.
    """
    _, in_catalog, path = view.address.partition("catalog://")
    catalog, _, name = path.partition("/")
    tools = _ELSEWHERE.get("catalog" if in_catalog else view.table_format, {})
    if in_catalog and "%" in view.address:  # names that others spell in their own ways
        tools = {}
    address = view.address.replace("'", "''")
    where = _readable(view.where)
    values = {
        "address": repr(view.address),
        "metadata": repr(metadata or view.address),
        "version": view.version,
        "base": view.version if view.base is None else view.base,
        "limit": view.limit,
        "condition": repr(where or "TRUE"),
        "filtered": f".filter(pl.sql_expr({where!r}))" if where else "",
        "spark_where": f".where({translate(where, 'spark')!r})" if where else "",
        "sql_where": f" WHERE {translate(where, 'duckdb')}" if where else "",
        "quoted": address,
        "catalog": repr(catalog),
        "name": repr(name),
        "identifier": repr(f"{catalog}.{name}"),
        "url": f"file://{address}" if address.startswith("/") else address,
    }
    code = _own_code(_QUESTIONS.get(view.page, _ROWS), values)
    return {"lakeview": code} | {tool: template.format(**values) for tool, template in tools.items()}


def _own_code(question: str, values: Mapping[str, object]) -> str:
    """A page's question to lakeview, with the imports that it needs."""
    code = f"{_OPEN}{_LOOK if 'look.' in question else ''}\n{question}".format(**values)
    return "".join(f"{line}\n" for name, line in _IMPORTS.items() if name in code) + code


def _readable(where: str | None) -> str | None:
    """The filter if it is a condition: code with another text in it would not run, or run what the text adds."""
    if where:
        with suppress(InvalidRequestError):
            predicate(where)
            return where
    return None


def metadata_file(table: Table) -> str | None:
    """The address of the one file that describes the table now, where its format has such."""
    file = getattr(table, "metadata_file", None)
    if file is None or table.address.endswith(file.path):
        return None
    return f"{table.address.rstrip('/')}/{file.path}"
