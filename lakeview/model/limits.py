"""Guards against broken and hostile tables: how much a reader follows, each checked where bytes come in."""

FILE_BYTES = 2**48
"""256 TiB, more than any object store lets a file be: a size above it is a mistake, as one below zero is."""

FILE_ROWS = 2**53
"""More rows than any file has: a count above it is a mistake, and a sum of such counts would turn negative."""

PATH_CHARACTERS = 32_767
"""Characters of the longest path that any system takes."""

FILE_POSITION = 1 << 40
"""Bytes from the start of a file to the deletes in it: file systems refuse positions far beyond."""

BITMAP_KEY = 2**31
"""High halves of the positions in a bitmap: positions are signed 64-bit numbers."""

VARIANT_DEPTH = 200
"""Levels of arrays and objects of a variant."""

VARIANT_CHARACTERS = 1 << 30
"""Characters of JSON that the variants of one batch may come to: names are stored once and written out each time."""

VARIANT_SCALE = 38
"""Digits behind the point of a decimal in a variant."""

COLUMN_CHUNKS = 20_000
"""Of files with more column chunks the ranges are left out: turning them into text would take seconds."""

NUMBER_DIGITS = 77
"""Digits of a number in statistics: no decimal type holds as many."""

CHECKPOINT_PARTS = 10_000
"""Parts of a checkpoint that a hint may name, and that are written."""

METADATA_BYTES = 512 << 20
"""Bytes of a metadata file once inflated."""

METADATA_TIES = 20
"""Metadata files of one number that are read to find the newest."""

AVRO_BYTES = 1 << 30
"""Bytes of an Avro file once inflated."""

AVRO_DEPTH = 64
"""Levels of an Avro schema."""

AVRO_TYPES = 4_000
"""Types that an Avro schema may come to by using a name again: records of two of the same double with every level."""

CATALOG_NAMESPACES = 10_000
"""Namespaces of a catalog that are listed."""

CATALOG_PAGES = 10_000
"""Pages of one listing of a catalog."""

CATALOG_ANSWER_BYTES = 128 << 20
"""Bytes of a REST catalog's answers to one question once inflated: of a table, whose metadata most send along, or of
all listings of the catalog."""

CATALOG_ANSWER_SECONDS = 300
"""How long one answer of a REST catalog may take to its end."""

CATALOG_LISTING_SECONDS = 3600
"""How long all listings of a catalog may take together."""
