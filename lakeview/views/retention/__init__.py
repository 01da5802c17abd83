"""What a vacuum or an expiration of snapshots would remove, and what the history costs."""

from lakeview.views.retention import cost, policy, refs, remedies, simulation

__all__ = ["cost", "policy", "refs", "remedies", "simulation"]
