"""Stores for tests: a folder that behaves like a store across a network, and stores that fail on purpose."""

from __future__ import annotations

from lakeview.model.config import Config
from lakeview.model.errors import StoreUnavailableError
from lakeview.storage import LocalStorage


class FarStorage(LocalStorage):
    """A folder that says it is remote: readers use the hint and ask for several things at a time."""

    def __init__(self, root: object, config: Config | None = None) -> None:
        super().__init__(str(root), config or Config())

    @property
    def remote(self) -> bool:
        return True


class LosesReplies(LocalStorage):
    """Creates the file and then says it does not know: the reply got lost on the way, `losses` times."""

    def __init__(self, root: object, losses: int = 1) -> None:
        super().__init__(str(root), Config())
        self.losses = losses

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)
        if self.losses:
            self.losses -= 1
            raise StoreUnavailableError("the reply was lost", place=path)


class TellsOwnFileIsThere(LosesReplies):
    """A client that sends a lost request again by itself, and then meets its own file."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        LocalStorage.put_if_absent(self, path, data)
        if self.losses:
            self.losses -= 1
            LocalStorage.put_if_absent(self, path, data)


class GoesDark(LosesReplies):
    """Creates the file, loses the reply, and then answers no question about it either."""

    def exists(self, path: str) -> bool:
        raise StoreUnavailableError("the store does not answer", place=path)
