"""Data files to rows: scan tasks, footers, casts, deletion bitmaps, and the difference of two versions."""
