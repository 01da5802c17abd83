"""The Delta log: files of `_delta_log` to the state of a table at a version."""
