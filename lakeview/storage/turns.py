"""A queue of the writers of one machine at an address, first in, first out: for fairness alone, never for exclusion.

A writer's ticket is a named pipe that it holds open, in a folder of the user's own outside of every table. Its name
begins with the time at which it was made. The kernel closes the pipes of a process that ends, however it ends.
"""

import hashlib
import os
import select
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

PATIENCE = 1.0
"""Seconds in which a writer waits for progress of the queue: the process at its head may be stopped."""


@contextmanager
def turn(address: str, patience: float = PATIENCE, meanwhile: Callable[[], None] | None = None) -> Iterator[bool]:
    """Within it, the writers of this user and machine that entered before have left; true if there were any.

    `meanwhile` is called once there is a ticket, if there are older ones: work that then takes none of the turn's time.

    The wait ends early once the head of the queue is the same for one to two times `patience` seconds. Without named
    pipes (Windows), or a folder for them, there is no wait.
    """
    with ExitStack() as stack:
        ticket, has_waited = "", False
        with suppress(OSError):
            ticket = _new_ticket(address, stack)
            has_waited = bool(_before(ticket))
        if has_waited and meanwhile is not None:
            meanwhile()
        with suppress(OSError):
            if has_waited:
                _wait(ticket, patience)
        yield has_waited


def _new_ticket(address: str, stack: ExitStack) -> str:
    """A named pipe of this thread, open until the stack is closed. OSError where there can be none."""
    if sys.platform == "win32":
        raise OSError("no named pipes")
    folder = os.path.join(tempfile.gettempdir(), f"lakeview-turns-{os.geteuid()}")
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    stat = os.lstat(folder)
    if stat.st_uid != os.geteuid() or stat.st_mode & 0o022:  # others could put there what is no pipe
        raise PermissionError(folder)
    queue = hashlib.sha256(os.fsencode(os.path.realpath(address))).hexdigest()[:32]
    name = f"{queue}-{time.monotonic_ns():020d}-{os.getpid()}-{threading.get_ident()}"
    hidden, ticket = os.path.join(folder, f".{name}"), os.path.join(folder, name)
    os.mkfifo(hidden, 0o600)
    stack.callback(_remove, hidden)
    stack.callback(os.close, os.open(hidden, os.O_RDWR | os.O_NONBLOCK))
    os.rename(hidden, ticket)  # once it is open: a ticket that is not is of a process that has ended
    stack.callback(_remove, ticket)
    return ticket


def _wait(ticket: str, patience: float) -> None:
    """Wait for the ticket before this one, which waits for those before it, as long as the head of the queue moves."""
    head = ""
    while before := _before(ticket):
        if _is_closed(before[-1], patience):
            continue
        if before[0] == head:
            _remove(head)  # so that no later writer waits for it
            return
        head = before[0]


def _before(ticket: str) -> list[str]:
    """The older tickets of the same queue, oldest first."""
    folder, own = os.path.split(ticket)
    queue = own.partition("-")[0]
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.startswith(queue) and name < own]


def _is_closed(ticket: str, seconds: float) -> bool:
    """Whether a ticket's writer has left the queue or ended; false if it is still there after so many seconds."""
    try:
        pipe = os.open(ticket, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:  # it left
        return True
    try:
        os.read(pipe, 1)
    except BlockingIOError:
        waiter = select.poll()
        waiter.register(pipe, select.POLLIN)
        return bool(waiter.poll(seconds * 1000))
    finally:
        os.close(pipe)
    with suppress(FileNotFoundError):  # another writer was first
        os.unlink(ticket)  # at its end at once: its process has ended without removing it
    return True


def _remove(ticket: str) -> None:
    with suppress(OSError):  # a writer whose patience ended removed it
        os.unlink(ticket)
