"""Guards against hostile conditions, queries and hints: each is checked where a text or a tree comes in."""

CHARACTERS = 400_000
"""Of a condition: a list of 20,000 numbers takes 300,000."""

TOKENS = 100_000
"""Words and signs of a text."""

NESTING = 40
"""Brackets and CASE inside each other. sqlglot takes about 15 Python frames for each."""

POSTFIX = 1_000
"""Casts (`::`) and subscripts: sqlglot takes quadratic time for a chain of them."""

TYPE_ATTEMPTS = 10_000
"""sqlglot reads what stands in brackets behind a type's name twice, as a type and as a value: `DATE (DATE (DATE ...` of
40 levels would take years. An attempt takes about 30 microseconds."""

DEPTH = 60
"""Levels of a condition or query. A chain of AND or OR is one level, however long."""

TERMS = 5_000
"""Conditions joined by AND and OR, in all."""

EXPRESSION_NODES = 200_000
"""Nodes of the expression that polars makes of a condition."""

QUERY_CHARACTERS = 20_000
"""Of a query."""

QUERY_NODES = 5_000
"""Parts of a query."""

QUERY_CONNECTORS = 500
"""ANDs and ORs of a query."""

PROOF_COLUMNS = 5
"""A condition on more columns is not proved to be satisfied: each doubles the cases of what is null."""

COMPARED_VALUES = 1000
"""Values of a list that are compared with bounds one by one; a longer list matches every file."""

HINT_VALUES = 100
"""Values of a membership test that are still sent."""

HINT_DEPTH = 100
"""Levels of a JSON tree."""
