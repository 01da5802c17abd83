"""Variant columns, shredded or not, to JSON text (Parquet's Variant Encoding and Variant Shredding)."""

from lakeview.rows.variant.shredding import is_variant, variant_text

__all__ = ["is_variant", "variant_text"]
