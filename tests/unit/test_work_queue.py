"""The work queue, in virtual time."""

import asyncio
from collections import Counter

import pytest

from dispatch_operator.controllers.work_queue import WorkQueue, backoff
from dispatch_operator.reconcile.actions import Result

pytestmark = pytest.mark.looptime


class Looks:
    """Records looks; each takes a second of virtual time and ends as it is told."""

    def __init__(self, *ends: Result) -> None:
        self.ends = list(ends)
        self.begun: list[tuple[float, str]] = []
        self.going_on: Counter[str] = Counter()
        self.most_at_once = 0

    async def __call__(self, key: str) -> Result:
        self.begun.append((asyncio.get_running_loop().time(), key))
        self.going_on[key] += 1
        assert self.going_on[key] == 1, "two reconciles one key at once"
        self.most_at_once = max(self.most_at_once, self.going_on.total())
        await asyncio.sleep(1)
        self.going_on[key] -= 1
        end = self.ends.pop(0) if self.ends else Result()
        if isinstance(end, Exception):
            raise end
        return end

    @property
    def times(self) -> list[float]:
        return [time for time, _ in self.begun]


async def test_events_of_a_waiting_key_are_one_and_of_a_running_key_are_one_more() -> None:
    looks = Looks()
    queue = WorkQueue(looks, max_concurrent=2)
    for _ in range(5):
        queue.add("a")
    await asyncio.sleep(0.5)
    for _ in range(5):
        queue.add("a")
    await asyncio.sleep(10)
    assert looks.begun == [(0, "a"), (1, "a")]


async def test_different_keys_go_side_by_side_up_to_the_bound() -> None:
    looks = Looks()
    queue = WorkQueue(looks, max_concurrent=3)
    for key in "abcdefg":
        queue.add(key)
    await asyncio.sleep(10)
    assert looks.most_at_once == 3
    assert sorted(key for _, key in looks.begun) == list("abcdefg")


async def test_failures_back_off_and_a_success_forgets_them() -> None:
    requeue = Result(requeue=True)
    looks = Looks(requeue, requeue, requeue, Result(), requeue)
    queue = WorkQueue(looks, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(30)
    waits = [later - earlier - 1 for earlier, later in zip(looks.times, looks.times[1:], strict=False)]
    assert [1 <= waits[0] <= 1, 1 <= waits[1] <= 2, 2 <= waits[2] <= 4] == [True] * 3
    queue.add("a")
    await asyncio.sleep(3)
    assert looks.times[-1] - looks.times[-2] == pytest.approx(2)


async def test_a_servers_retry_after_is_honoured() -> None:
    looks = Looks(Result(requeue=True, retry_after=17))
    queue = WorkQueue(looks, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(60)
    assert looks.times == [0, pytest.approx(18)]


async def test_a_look_may_ask_to_be_woken() -> None:
    looks = Looks(Result(requeue_after=5))
    queue = WorkQueue(looks, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(60)
    assert looks.times == [0, pytest.approx(6)]


async def test_an_event_comes_before_a_backoff_and_takes_its_place() -> None:
    requeue = Result(requeue=True)
    looks = Looks(requeue, requeue, requeue, requeue, requeue, requeue)
    queue = WorkQueue(looks, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(32)
    due = looks.times[-1] + 1 + 16
    queue.add("a")
    await asyncio.sleep(5)
    assert looks.times[-1] < due


async def test_an_event_does_not_come_before_the_time_that_a_server_asked_for() -> None:
    looks = Looks(Result(requeue=True, retry_after=50))
    queue = WorkQueue(looks, max_concurrent=1)
    queue.add("a")
    for _ in range(5):
        await asyncio.sleep(5)
        queue.add("a")
    await asyncio.sleep(100)
    assert looks.times == [0, pytest.approx(51)]


async def test_an_event_of_a_failing_look_itself_does_not_run_hot() -> None:
    looks = Looks(Result(requeue=True))
    queue = WorkQueue(looks, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(0.5)
    queue.add("a")
    await asyncio.sleep(20)
    assert looks.times == [0, pytest.approx(2)]


async def test_a_fault_of_ours_ends_no_other_work(caplog: pytest.LogCaptureFixture) -> None:
    looks = Looks(ValueError("ours"))  # type: ignore[arg-type]
    queue = WorkQueue(looks, max_concurrent=1)
    queue.add("a")
    queue.add("b")
    await asyncio.sleep(10)
    assert [key for _, key in looks.begun] == ["a", "b", "a"]
    assert "looking at a failed" in caplog.text


async def test_closing_lets_looks_end_and_takes_no_more() -> None:
    looks = Looks()
    queue = WorkQueue(looks, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(0.1)
    queue.add("b")
    await queue.close(grace_period=5)
    queue.add("c")
    await asyncio.sleep(10)
    assert [key for _, key in looks.begun] == ["a"]
    assert looks.going_on.total() == 0


async def test_closing_cancels_what_takes_too_long() -> None:
    looks = Looks(Result(requeue_after=1))
    queue = WorkQueue(looks, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(0.1)
    await queue.close(grace_period=0.2)
    assert asyncio.get_running_loop().time() == pytest.approx(0.3)
    await queue.close(grace_period=0.2)


@pytest.mark.parametrize(
    ("failures", "least", "most"), [(1, 1, 1), (2, 1, 2), (4, 4, 8), (7, 30, 60), (10_000, 30, 60)]
)
def test_backoff_doubles_from_one_second_to_sixty(failures: int, least: float, most: float) -> None:
    waits = [backoff(failures) for _ in range(200)]
    assert least <= min(waits) <= max(waits) <= most
