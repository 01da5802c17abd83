"""The requests of a REST catalog's session, whose answers are limited in bytes and in time."""

import threading
import time
from queue import Empty, SimpleQueue
from typing import Any

from requests import ConnectionError as BrokenConnection
from requests import PreparedRequest, Response, Session
from requests.adapters import BaseAdapter
from urllib3.exceptions import HTTPError as TransportError

from lakeview.iceberg.catalog.refusals import foreign_errors
from lakeview.model import limits
from lakeview.model.errors import InvalidRequestError, LakeviewError, StoreUnavailableError

_SECONDS = (10, 60)
"""How long a connection, and the wait for the next bytes of an answer, may take: pyiceberg itself waits for ever."""

_PIECE = 64 << 10


class Allowance:
    """The bytes and seconds that are left for the answers to one question, such as a listing of the whole catalog."""

    def __init__(self, catalog: str) -> None:
        self.catalog = catalog
        self.renew(limits.CATALOG_ANSWER_SECONDS)

    def renew(self, seconds: float) -> None:
        """Begin another question."""
        self._bytes = limits.CATALOG_ANSWER_BYTES
        self._end = time.monotonic() + seconds

    def seconds(self) -> float:
        """What one answer may take now. StoreUnavailableError where no time is left."""
        left = min(limits.CATALOG_ANSWER_SECONDS, self._end - time.monotonic())
        if left <= 0:
            raise self.too_slow()
        return left

    def spend(self, size: int) -> None:
        """Count bytes of an answer. InvalidRequestError for more than the question may be answered with."""
        self._bytes -= size
        if self._bytes < 0:
            raise InvalidRequestError(
                f"the catalog {self.catalog} answers one question with more than "
                f"{limits.CATALOG_ANSWER_BYTES >> 20:,} MiB",
                fix="open tables by their names, or ask the operator of the catalog",
                place=self.catalog,
                kind="bad-catalog",
            )

    def too_slow(self) -> StoreUnavailableError:
        """The error of an answer that does not come to its end."""
        return StoreUnavailableError(
            f"the catalog {self.catalog} did not answer: its answer did not end in time",
            fix="try again; check that it runs, and its uri",
            place=self.catalog,
            kind="catalog-unavailable",
        )


class BoundedAdapter(BaseAdapter):
    """Another adapter's answers, read whole within an allowance."""

    def __init__(self, inner: BaseAdapter, allowance: Allowance) -> None:
        super().__init__()
        self._inner = inner
        self._allowance = allowance
        self._errors: tuple[type[Exception], ...] = (*foreign_errors(allowance.catalog), LakeviewError)

    def send(self, request: PreparedRequest, *_: Any, **options: Any) -> Response:
        """The answer, with its body. Errors of the other adapter, and of `Allowance`."""
        seconds = self._allowance.seconds()
        end = time.monotonic() + seconds
        answers: SimpleQueue[Response | Exception] = SimpleQueue()

        def ask() -> None:
            outcome: Response | Exception = BrokenConnection("the request ended without an answer", request=request)
            try:
                answer = self._inner.send(request, **{**options, "stream": True, "timeout": _SECONDS})
                outcome = self._read(answer, end)
            except self._errors as error:  # of AWS keys that are missing, too, for a request to be signed
                outcome = error
            finally:
                answers.put(outcome)

        # in a thread, since a socket's time-out begins again with each piece: a server that sends a byte of a header
        # now and then would have it wait for ever
        threading.Thread(target=ask, name="lakeview-catalog", daemon=True).start()
        try:
            answer = answers.get(timeout=seconds)
        except Empty:
            raise self._allowance.too_slow() from None
        if isinstance(answer, Response):
            return answer
        raise answer

    def _read(self, answer: Response, end: float) -> Response:
        pieces: list[bytes] = []
        try:
            while piece := answer.raw.read1(_PIECE, decode_content=True):
                if time.monotonic() > end:
                    raise self._allowance.too_slow()
                self._allowance.spend(len(piece))
                pieces.append(piece)
        except TransportError as error:
            raise BrokenConnection(error, response=answer) from error
        finally:
            answer.close()
        answer._content = b"".join(pieces)
        return answer

    def close(self) -> None:
        """Give back the connections of the other adapter."""
        self._inner.close()


def bound_answers(session: Session, allowance: Allowance) -> None:
    """Limit the answers of a session, by every adapter that it has. Idempotent."""
    for prefix, adapter in list(session.adapters.items()):
        if not isinstance(adapter, BoundedAdapter):
            session.mount(prefix, BoundedAdapter(adapter, allowance))
