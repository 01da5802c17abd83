"""What the pages of the app are made of.

A server runs for weeks, and opens a table of a million files now and then: memory that is free again goes back to the
system at once. The allocators of Arrow and polars read these words when they are loaded, which is after this.
"""

import os

os.environ.setdefault("MIMALLOC_PURGE_DELAY", "0")
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
