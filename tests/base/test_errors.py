"""Errors: one tree, each with a kind, a fix and a place, and whole after a journey."""

from __future__ import annotations

import pickle

import pytest

from lakeview.model import errors
from lakeview.model.errors import CommitConflictError, LakeviewError

TREE: dict[str, tuple[type[Exception], str]] = {
    "NotATableError": (FileNotFoundError, "not-a-table"),
    "VersionNotFoundError": (LookupError, "version-not-found"),
    "UnsupportedTableError": (ValueError, "unsupported-table"),
    "CorruptTableError": (ValueError, "corrupt-table"),
    "DataFileMissingError": (errors.CorruptTableError, "data-file-missing"),
    "StoreUnavailableError": (ConnectionError, "store-unavailable"),
    "AccessDeniedError": (PermissionError, "access-denied"),
    "CommitConflictError": (RuntimeError, "commit-conflict"),
    "ConstraintViolationError": (ValueError, "constraint-violation"),
    "InvalidRequestError": (ValueError, "invalid-request"),
    "RuleError": (errors.InvalidRequestError, "rule"),
    "SharingError": (ConnectionError, "sharing"),
    "MissingExtraError": (ImportError, "missing-extra"),
}


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    names = {n for n, e in vars(errors).items() if isinstance(e, type) and issubclass(e, LakeviewError)}
    assert names == {"LakeviewError", *TREE}
    assert errors.__doc__ is not None
    assert all(name in errors.__doc__ for name in names)


@pytest.mark.parametrize(("name", "builtin", "kind"), [(n, b, k) for n, (b, k) in TREE.items()], ids=list(TREE))
def test_an_error_is_also_the_builtin_that_fits_and_travels_whole(
    name: str, builtin: type[Exception], kind: str
) -> None:
    error = getattr(errors, name)("found this", fix="do that", place="here")
    assert isinstance(error, builtin)
    assert isinstance(error, LakeviewError)
    assert (error.kind, error.fix, error.place, error.message) == (kind, "do that", "here", "found this")
    assert str(error) == "found this\n  fix: do that"
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (copy.kind, copy.fix, copy.place, str(copy)) == (kind, "do that", "here", str(error))


def test_a_kind_may_be_narrower_than_the_class() -> None:
    error = errors.CorruptTableError("x", kind="corrupt-commit")
    assert (error.kind, error.fix, str(error)) == ("corrupt-commit", None, "x")


def test_a_conflict_travels_with_the_winner() -> None:
    error = CommitConflictError("x", fix="y", version=7, operation="WRITE", user="ada", kind="concurrent-append")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.version, copy.operation, copy.user, copy.kind) == (7, "WRITE", "ada", "concurrent-append")


def test_an_error_about_an_endless_text_shows_both_ends() -> None:
    error = LakeviewError("begin" + "x" * 10**6 + "end", fix="y" * 10**6, place="z" * 10**6)
    assert error.message.startswith("begin")
    assert error.message.endswith("end")
    assert len(str(error)) < 2_000
    assert len(str(error.place)) < 1_000


def test_an_error_holds_nothing_that_steers_a_terminal() -> None:
    error = LakeviewError("file \x1b[31m\u202e is gone\nin line 2", fix="delete \x07")
    assert str(error) == "file \\x1b[31m\\u202e is gone\nin line 2\n  fix: delete \\x07"
