"""Parts of the Pipelines page."""
