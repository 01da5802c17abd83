"""One exclusive creation whose reply may be lost: whose file is there is settled by what it holds."""

from collections.abc import Callable

from lakeview.model.errors import LakeviewError, StoreUnavailableError
from lakeview.storage.coordinator import UNCLAIMED
from lakeview.storage.interface import Storage, back_off

_REPEATS = 3
"""How often a put whose outcome is not known is sent again: it settles the outcome, whatever it finds."""


class ExclusivePut:
    """Creations of files by one writer.

    The store's reply to each is *won*, *lost* or *unknown*. `holds_ours`: whether the file at a path, which is there,
    is this writer's; `unknown_outcome`: the error where no reply says so.
    `unsure`: whether the file is there, or may be although it seemed to fail or was interrupted; what it names has to
    stay then.
    """

    def __init__(
        self,
        storage: Storage,
        holds_ours: Callable[[str], bool],
        unknown_outcome: Callable[[str, LakeviewError], StoreUnavailableError],
    ) -> None:
        self._storage = storage
        self._holds_ours = holds_ours
        self._unknown_outcome = unknown_outcome
        self.unsure = False

    def put(self, path: str, data: bytes) -> bool:
        """True if the file is this writer's, false if it is another's.

        StoreUnavailableError if the store did not answer; that of `unknown_outcome` where the file may be there.
        """
        for attempt in range(_REPEATS):
            self.unsure = True
            try:
                self._storage.put_if_absent(path, data)
                return True
            except FileExistsError:
                return self._is_ours(path)  # an earlier try of the store's own may have made it
            except StoreUnavailableError as error:
                if error.kind == UNCLAIMED and not attempt:  # nothing was sent to the store
                    self.unsure = False
                    raise
                if self._is_ours(path):  # the reply was lost after the file was made
                    return True
                # what a remote store was sent may still arrive; a local call is over when it returns
                self.unsure = self._storage.remote
                if not self.unsure:
                    raise
                if attempt + 1 == _REPEATS:
                    raise self._unknown_outcome(path, error) from error
                back_off(attempt, self._storage.remote)
            except LakeviewError:  # refused: only an earlier request may have made it
                self.unsure = attempt > 0
                raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _is_ours(self, path: str) -> bool:
        """Whether the file is there and ours; StoreUnavailableError where the store does not say."""
        self.unsure = True
        try:
            ours = self._storage.exists(path) and self._holds_ours(path)
        except StoreUnavailableError as error:
            raise self._unknown_outcome(path, error) from error
        self.unsure = ours
        return ours
