"""Writers of one machine in a queue, and what a writer does behind one that is killed or stopped."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakeview.storage.turns import turn


@pytest.fixture
def tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the queues of this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"lakeview-turns-{os.geteuid()}"


def test_writers_have_their_turn_in_the_order_of_their_tickets(tickets: Path) -> None:
    order: list[object] = []

    def write(number: int) -> None:
        with turn("/table", patience=60, meanwhile=lambda: order.append("ready")) as waited:
            assert waited
            order.append(number)

    with ThreadPoolExecutor(3) as pool:
        with turn("/table", meanwhile=lambda: order.append("no wait")) as waited:
            assert not waited
            waiting = []
            for number in range(3):
                waiting.append(pool.submit(write, number))
                while len(order) < number + 1:
                    assert not waiting[-1].done()
            with turn("/another table", patience=60) as waited:  # has a queue of its own
                assert not waited
                assert order == ["ready"] * 3
        for future in waiting:
            future.result()
    assert order[3:] == [0, 1, 2]
    assert not list(tickets.iterdir())


def test_a_writer_that_was_killed_is_not_waited_for(tickets: Path) -> None:
    with turn("/table"):
        (ticket,) = tickets.iterdir()
    os.mkfifo(ticket)  # what is left of it: no process has it open
    with turn("/table", patience=60):
        assert not ticket.exists()
    ticket.write_text("no pipe")
    with turn("/table", patience=60):
        assert not ticket.exists()


def test_a_writer_that_is_stopped_is_waited_for_once(tickets: Path) -> None:
    with turn("/table"):
        (ticket,) = tickets.iterdir()
        with turn("/table", patience=0.01):
            assert not ticket.exists()
        with turn("/table", patience=60):
            pass


def test_without_a_folder_of_its_own_no_writer_waits(tickets: Path) -> None:
    tickets.write_text("a file of another program")
    with turn("/table"), turn("/table", patience=60):
        pass
    tickets.unlink()
    tickets.mkdir()
    tickets.chmod(0o777)
    with turn("/table"), turn("/table", patience=60):
        assert not list(tickets.iterdir())
