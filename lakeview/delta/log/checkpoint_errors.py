"""Errors of libraries over a file of a checkpoint to ours."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import polars as pl
import pyarrow as pa

from lakeview.model.errors import CorruptTableError, LakeviewError


@contextmanager
def readable(name: str, parent: str | None = None) -> Iterator[None]:
    """Errors of the Parquet and frame libraries over one file of a checkpoint, or a sidecar of one, become ours."""
    what = f"checkpoint {name}" if parent is None else f"sidecar {name} of checkpoint {parent}"
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptTableError(
            f"{what} was listed and is gone" if parent is None else f"{what} is missing",
            fix="refresh: a cleanup may be running" if parent is None else "restore the file from a backup",
            place=name,
            kind="corrupt-checkpoint",
        ) from error
    except (
        pa.ArrowException,
        pl.exceptions.PolarsError,
        msgspec.DecodeError,
        RecursionError,
        OSError,
        TypeError,
        KeyError,
        ValueError,
        OverflowError,
    ) as error:
        if isinstance(error, LakeviewError):  # access denied, or a store that does not answer: not the file's fault
            raise
        raise CorruptTableError(
            f"{what} cannot be read: {_first_line(error)}",
            fix="restore the file from a backup; if every commit is still there, deleting the checkpoint is enough",
            place=name,
            kind="corrupt-checkpoint",
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
