"""Builders: a table's history in words, made into the files another writer would have left."""
