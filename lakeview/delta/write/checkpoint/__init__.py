"""The state of a table at a version to the files of a checkpoint (delta protocol, Checkpoints)."""

from lakeview.delta.write.checkpoint.files import write_checkpoint

__all__ = ["write_checkpoint"]
