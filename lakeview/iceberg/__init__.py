"""Apache Iceberg: a metadata file and the manifests below it to snapshots, history and rows."""
