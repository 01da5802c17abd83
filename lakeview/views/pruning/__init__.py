"""What a filter reads, what data skipping leaves out, and how well files are clustered."""

from lakeview.views.pruning import clustering, plan

__all__ = ["clustering", "plan"]
