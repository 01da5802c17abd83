"""Variant columns, shredded or not, to JSON text, and back (Parquet's Variant Encoding and Variant Shredding)."""

from lakeview.rows.variant.builder import variant_binaries
from lakeview.rows.variant.shredding import is_variant, variant_text
from lakeview.rows.variant.unshredding import stored_variants

__all__ = ["is_variant", "stored_variants", "variant_binaries", "variant_text"]
