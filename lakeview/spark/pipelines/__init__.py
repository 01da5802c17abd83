"""Pipelines: projects of Spark Declarative Pipelines, and what these lack: expectations, publication and records."""
