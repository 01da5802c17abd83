"""Spark for a minute of work on few rows: what tests add to the settings of a session."""

import sys
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark.jsa"
"""Spark's classes as a JVM maps them into its memory (`tests/spark/class_archive.py`)."""

QUICK_CLASSES = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Flags of Java to load classes without a check of their bytecode, a fifth of the CPU time to the first rows, and from
the archive, two fifths of what is left. A JVM goes without an archive of another Java or other jars, and says nothing
of it."""
if ARCHIVE.exists():
    QUICK_CLASSES += f' "-XX:SharedArchiveFile={ARCHIVE}" -Xlog:disable'

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Queries are not compiled: of a few rows, that costs more than it brings."""

WORKERS = Path(__file__).parent / "spark" / "workers"
"""On the PYTHONPATH of a driver, what its Python workers import when they start."""


def quick_settings() -> dict[str, str]:
    """Settings of a session whose JVM these flags are given to as well."""
    from lakeview.spark.sessions import settings

    java_options = "spark.driver.extraJavaOptions"
    return {java_options: f"{settings(short_job=True)[java_options]} {QUICK_CLASSES}", **INTERPRETED}
