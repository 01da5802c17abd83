"""What a local store does where the file system has no hard links: errors of the disk are errors, nothing is half."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lakeview.model.config import Config
from lakeview.model.errors import AccessDeniedError, LakeviewError, StoreUnavailableError
from lakeview.storage import LocalStorage, local_files

Refusal = Callable[..., None]


def refusal(number: int) -> Refusal:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def store(folder: Path) -> LocalStorage:
    return LocalStorage(str(folder), Config())


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, StoreUnavailableError), (errno.EDQUOT, StoreUnavailableError),
        (errno.EIO, StoreUnavailableError), (errno.EROFS, StoreUnavailableError), (errno.EACCES, AccessDeniedError),
    ],
)  # fmt: skip
def test_an_error_of_the_disk_is_not_taken_for_missing_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, expected: type[LakeviewError]
) -> None:
    monkeypatch.setattr(os, "link", refusal(number))
    with pytest.raises(expected):
        store(tmp_path).put_if_absent("f", b"data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV])
def test_without_hard_links_a_file_appears_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """By a rename that replaces nothing: a process killed while it writes leaves a temporary file."""
    monkeypatch.setattr(os, "link", refusal(number))
    names: list[str] = []
    create = local_files.create_exclusively

    def recorded(full: str, data: bytes, *, durable: bool) -> None:
        names.append(os.path.basename(full))
        create(full, data, durable=durable)

    monkeypatch.setattr(local_files, "create_exclusively", recorded)
    store(tmp_path).put_if_absent("f", b"data")
    with pytest.raises(FileExistsError):
        store(tmp_path).put_if_absent("f", b"other")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_bytes() == b"data"
    assert "f" not in names, "written under its own name"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS])
def test_without_links_and_exclusive_renames_a_file_is_created_exclusively(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "link", refusal(errno.EPERM))
    monkeypatch.setattr(local_files, "_rename_exclusively", refusal(number))
    store(tmp_path).put_if_absent("f", b"data")
    with pytest.raises(FileExistsError):
        store(tmp_path).put_if_absent("f", b"other")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("f", b"data")]
