"""Fuzzing: every parser of a table's bytes is given bytes that no writer wrote, and must answer by design."""
