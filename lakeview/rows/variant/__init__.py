"""Variant columns, shredded or not, to JSON text, and back (Parquet's Variant Encoding and Variant Shredding)."""

from lakeview.rows.variant.builder import STORED, variant_binaries
from lakeview.rows.variant.shredding import is_variant, variant_text

__all__ = ["STORED", "is_variant", "variant_binaries", "variant_text"]
