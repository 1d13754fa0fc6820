"""A blocked event loop is told of by another thread, with what blocks it; in real time, which alone can be blocked."""

import asyncio
import logging
import threading

import pytest

from dispatch_operator.kube.stall_watch import telling_of_stalls


class Told(logging.Handler):
    """Collects what is told, and says when there is something."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.heard = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.heard.set()


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture(autouse=True)
def _heard(told: Told) -> object:
    logger = logging.getLogger("dispatch_operator.kube.stall_watch")
    logger.addHandler(told)
    yield
    logger.removeHandler(told)


def blocks_until(told: Told) -> None:
    """Block the event loop, as a decoder without end would, until that is told."""
    assert told.heard.wait(30)
    told.heard.clear()


async def test_a_stall_is_told_with_what_blocks_and_its_end(told: Told) -> None:
    async with telling_of_stalls(0.05):
        blocks_until(told)
        (line,) = told.lines
        assert "the event loop has not turned" in line
        assert "blocks_until (test_stall_watch.py:" in line
        await _turns_until(told, "turns again")


async def _turns_until(told: Told, words: str) -> None:
    """Let the loop turn until something is told; on a busy machine it may be blocked meanwhile, too."""
    while not any(words in line for line in told.lines):
        assert await asyncio.to_thread(told.heard.wait, 30)
        told.heard.clear()


async def test_nothing_is_told_of_a_loop_that_turns(told: Told) -> None:
    async with telling_of_stalls(30):
        pass
    assert told.lines == []
