"""Spark for a minute of work on few rows: what tests add to the settings of a session."""

from pathlib import Path

UNVERIFIED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Flags of Java to load classes without a check of their bytecode: a fifth of the CPU time to the first rows."""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Queries are not compiled: of a few rows, that costs more than it brings."""

WORKERS = Path(__file__).parent / "spark" / "workers"
"""On the PYTHONPATH of a driver, what its Python workers import when they start."""
