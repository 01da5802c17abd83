"""What a vacuum or an expiration of snapshots would remove, and what the history costs."""

from lakeview.views.retention import cost, policy, remedies, simulation

__all__ = ["cost", "policy", "remedies", "simulation"]
