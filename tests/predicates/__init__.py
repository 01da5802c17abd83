"""Conditions and queries in SQL: what is read, and what is refused."""
