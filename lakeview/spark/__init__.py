"""Spark: sessions, and `format("lakeview")` for reading and writing tables with it. The only home of pyspark."""
