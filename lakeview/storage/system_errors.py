"""Errors of files and of the libraries of stores to errors of ours."""

import errno

from lakeview.model.errors import AccessDeniedError, InvalidRequestError, StoreUnavailableError


class ErrorTranslation:
    """Turns a store's errors into ours; absence and presence stay Python's own, for the caller to explain."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(
            error, FileNotFoundError | FileExistsError | NotADirectoryError | AccessDeniedError
        ):
            return
        if isinstance(error, PermissionError):
            raise AccessDeniedError(
                f"the store refuses access to {self._path}", fix="check the permissions", place=self._path
            ) from error
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            raise InvalidRequestError(
                f"the path of {self._path} is longer than the file system allows",
                fix="check the address; on most file systems a name has at most 255 bytes, and a path 4,096",
                place=self._path,
                kind="path-too-long",
            ) from error
        if isinstance(error, OSError | TimeoutError) and not isinstance(error, StoreUnavailableError):
            raise StoreUnavailableError(
                f"{self._path} could not be read or written: {error.strerror or type(error).__name__}",
                fix="try again; check the store and the disk",
                place=self._path,
            ) from error
