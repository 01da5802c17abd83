"""Spark for a minute of work on few rows: what tests add to the settings of a session."""

from pathlib import Path

UNVERIFIED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Flags of Java to load classes without a check of their bytecode: a fifth of the CPU time to the first rows."""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Queries are not compiled: of a few rows, that costs more than it brings."""

WORKERS = Path(__file__).parent / "spark" / "workers"
"""On the PYTHONPATH of a driver, what its Python workers import when they start."""


def quick_settings() -> dict[str, str]:
    """Settings of a session whose JVM these flags are given to as well."""
    from lakeview.spark.sessions import settings

    java_options = "spark.driver.extraJavaOptions"
    return {java_options: f"{settings(short_job=True)[java_options]} {UNVERIFIED}", **INTERPRETED}
