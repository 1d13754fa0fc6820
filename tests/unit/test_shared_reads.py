"""One read for many: each answer is as live as one of its own, and nothing is kept for long."""

import asyncio

import pytest

from dispatch_operator.kube.shared_reads import KEPT_SECONDS, SharedReads

pytestmark = pytest.mark.looptime


class Server:
    """Answers with the number of the request, after a second."""

    def __init__(self) -> None:
        self.asked = 0

    async def answer(self) -> int:
        self.asked += 1
        number = self.asked
        await asyncio.sleep(1)
        return number


async def test_a_thousand_that_were_woken_together_make_one_read_whenever_their_turn_comes() -> None:
    server, reads = Server(), SharedReads[int]()
    woken = asyncio.get_running_loop().time()
    found = await asyncio.gather(*(reads.read("a", woken, server.answer) for _ in range(500)))
    await asyncio.sleep(20)
    found += [await reads.read("a", woken, server.answer) for _ in range(500)]
    assert set(found) == {1}
    assert server.asked == 1


async def test_what_was_woken_after_a_read_began_makes_another() -> None:
    server, reads = Server(), SharedReads[int]()
    first = asyncio.create_task(reads.read("a", 0.0, server.answer))
    await asyncio.sleep(0.5)
    # The first is still on its way, and may have been answered before this was woken.
    assert await reads.read("a", asyncio.get_running_loop().time(), server.answer) == 2
    assert await first == 1
    assert await reads.read("b", 0.0, server.answer) == 3


async def test_who_asked_first_may_be_cancelled() -> None:
    server, reads = Server(), SharedReads[int]()
    first, second = (asyncio.create_task(reads.read("a", 0.0, server.answer)) for _ in range(2))
    await asyncio.sleep(0.5)
    first.cancel()
    assert await second == 1


async def test_a_read_for_which_nobody_waits_any_more_ends_and_is_nobodys_answer() -> None:
    server, reads, before = Server(), SharedReads[int](), asyncio.all_tasks()
    waiting = [asyncio.create_task(reads.read("a", 0.0, server.answer)) for _ in range(3)]
    await asyncio.sleep(0.5)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    assert await reads.read("a", 0.0, server.answer) == 2


async def test_answers_are_not_kept_for_ever() -> None:
    server, reads = Server(), SharedReads[int]()
    for number in range(100):
        await reads.read(number, 0.0, server.answer)
    assert len(reads._reads) <= KEPT_SECONDS + 1  # noqa: SLF001 - what is left.
