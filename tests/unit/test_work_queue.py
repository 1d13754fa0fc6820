"""The work queue, in virtual time."""

import asyncio
from collections import Counter
from collections.abc import Sized
from itertools import pairwise

import pytest

from dispatch_operator.controllers.work_queue import MOST_SLOW, SLOW_SECONDS, SOON_SECONDS, WorkQueue
from dispatch_operator.reconcile.actions import Result

pytestmark = pytest.mark.looptime


class Reconciles:
    """Records reconciles; each takes some virtual time and ends as it is told."""

    def __init__(self, *ends: Result, last: float = 1.0) -> None:
        self.ends = list(ends)
        self.last = last
        self.begun: list[tuple[float, str]] = []
        self.going_on: Counter[str] = Counter()
        self.most_at_once = 0

    async def __call__(self, key: str) -> Result:
        self.begun.append((asyncio.get_running_loop().time(), key))
        self.going_on[key] += 1
        assert self.going_on[key] == 1, "two reconciles of one key at once"
        self.most_at_once = max(self.most_at_once, self.going_on.total())
        await asyncio.sleep(self.last)
        self.going_on[key] -= 1
        end = self.ends.pop(0) if self.ends else Result()
        if isinstance(end, Exception):
            raise end
        return end

    def of(self, group: str) -> list[float]:
        """Return when the reconciles of a group began."""
        return [time for time, key in self.begun if key.startswith(group)]

    @property
    def times(self) -> list[float]:
        return [time for time, _ in self.begun]


async def test_events_of_a_waiting_key_are_one_and_of_a_running_key_are_one_more() -> None:
    reconciles = Reconciles()
    queue = WorkQueue(reconciles, max_concurrent=2)
    for _ in range(5):
        queue.add("a")
    await asyncio.sleep(0.5)
    for _ in range(5):
        queue.add("a")
    await asyncio.sleep(10)
    assert reconciles.begun == [(0, "a"), (1, "a")]


async def test_different_keys_go_side_by_side_up_to_the_bound() -> None:
    reconciles = Reconciles()
    queue = WorkQueue(reconciles, max_concurrent=3)
    for key in "abcdefg":
        queue.add(key)
    await asyncio.sleep(10)
    assert reconciles.most_at_once == 3
    assert sorted(key for _, key in reconciles.begun) == list("abcdefg")


async def test_failures_back_off_and_a_success_forgets_them() -> None:
    requeue = Result(requeue=True)
    reconciles = Reconciles(requeue, requeue, requeue, Result(), requeue)
    queue = WorkQueue(reconciles, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(30)
    waits = [later - earlier - 1 for earlier, later in zip(reconciles.times, reconciles.times[1:], strict=False)]
    assert [1 <= waits[0] <= 2, 2 <= waits[1] <= 4, 4 <= waits[2] <= 8] == [True] * 3
    queue.add("a")
    await asyncio.sleep(3)
    assert 2 <= reconciles.times[-1] - reconciles.times[-2] <= 3


async def test_a_servers_retry_after_is_honoured() -> None:
    reconciles = Reconciles(Result(requeue=True, retry_after=17))
    queue = WorkQueue(reconciles, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(60)
    assert reconciles.times == [0, pytest.approx(18)]


async def test_a_server_that_asks_for_ever_is_asked_again_after_five_minutes() -> None:
    reconciles = Reconciles(Result(requeue=True, retry_after=float("9" * 400)))
    queue = WorkQueue(reconciles, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(10)
    queue.add("a")
    await asyncio.sleep(1_000)
    assert reconciles.times == [0, pytest.approx(301)]


async def test_a_reconcile_may_ask_to_be_made_again() -> None:
    reconciles = Reconciles(Result(requeue_after=5))
    queue = WorkQueue(reconciles, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(60)
    assert reconciles.times == [0, pytest.approx(6)]


async def test_an_event_comes_before_a_backoff_and_takes_its_place() -> None:
    requeue = Result(requeue=True)
    reconciles = Reconciles(requeue, requeue, requeue, requeue, requeue, requeue)
    queue = WorkQueue(reconciles, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(32)
    due = reconciles.times[-1] + 1 + 16
    queue.add("a")
    await asyncio.sleep(5)
    assert reconciles.times[-1] < due


async def test_an_event_does_not_come_before_the_time_that_a_server_asked_for() -> None:
    reconciles = Reconciles(Result(requeue=True, retry_after=50))
    queue = WorkQueue(reconciles, max_concurrent=1)
    queue.add("a")
    for _ in range(5):
        await asyncio.sleep(5)
        queue.add("a")
    await asyncio.sleep(100)
    assert reconciles.times == [0, pytest.approx(51)]


async def test_a_refused_status_is_tried_ever_more_seldom_whatever_happens() -> None:
    reconciles = Reconciles(*[Result(requeue=True, refused=True)] * 30)
    queue = WorkQueue(reconciles, max_concurrent=1)
    for _ in range(7_200):
        queue.add("a")
        await asyncio.sleep(1)
    waits = [later - earlier - 1 for earlier, later in pairwise(reconciles.times)]
    assert [1 <= waits[0] <= 2, 2 <= waits[1] <= 4, 4 <= waits[2] <= 8] == [True] * 3
    assert max(waits) <= 600
    assert min(waits[10:]) >= 300


async def test_an_event_of_a_failing_reconcile_itself_does_not_run_hot() -> None:
    reconciles = Reconciles(Result(requeue=True))
    queue = WorkQueue(reconciles, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(0.5)
    queue.add("a")
    await asyncio.sleep(20)
    assert reconciles.times == [0, pytest.approx(2)]


async def test_a_fault_of_ours_ends_no_other_work(caplog: pytest.LogCaptureFixture) -> None:
    reconciles = Reconciles(ValueError("ours"))  # type: ignore[arg-type]
    queue = WorkQueue(reconciles, max_concurrent=1)
    queue.add("a")
    queue.add("b")
    await asyncio.sleep(10)
    assert [key for _, key in reconciles.begun] == ["a", "b", "a"]
    assert "reconciling a failed" in caplog.text


async def test_closing_lets_reconciles_end_and_takes_no_more() -> None:
    reconciles = Reconciles()
    queue = WorkQueue(reconciles, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(0.1)
    queue.add("b")
    # By now it waits for the one that goes on.
    await asyncio.sleep(0.1)
    queue.add("d")
    await queue.close(grace_period=5)
    queue.add("c")
    await asyncio.sleep(10)
    assert [key for _, key in reconciles.begun] == ["a"]
    assert reconciles.going_on.total() == 0


async def test_closing_cancels_what_takes_too_long() -> None:
    reconciles = Reconciles(Result(requeue_after=1))
    queue = WorkQueue(reconciles, max_concurrent=1)
    queue.add("a")
    await asyncio.sleep(0.1)
    await queue.close(grace_period=0.2)
    assert asyncio.get_running_loop().time() == pytest.approx(0.3)
    await queue.close(grace_period=0.2)


async def test_groups_take_turns_however_many_keys_one_of_them_has() -> None:
    reconciles = Reconciles()
    queue = WorkQueue(reconciles, max_concurrent=1, group=lambda key: key[0])
    for key in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
        queue.add(key)
    await asyncio.sleep(20)
    assert [key for _, key in reconciles.begun] == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


async def test_a_thousand_keys_of_one_group_keep_another_waiting_for_one_turn() -> None:
    reconciles = Reconciles()
    queue = WorkQueue(reconciles, max_concurrent=2, group=lambda key: key[0])
    for number in range(1_000):
        queue.add(f"a{number}")
    await asyncio.sleep(3.5)
    queue.add("b")
    await asyncio.sleep(2)
    assert [time for time, key in reconciles.begun if key == "b"] == [pytest.approx(4)]
    await queue.close(grace_period=5)


async def test_what_only_waits_holds_no_slot_that_another_needs() -> None:
    reconciles = Reconciles(last=10)
    queue = WorkQueue(reconciles, max_concurrent=2, group=lambda key: key[0])
    for key in ("a1", "a2", "a3", "b1"):
        queue.add(key)
    await asyncio.sleep(30)
    assert reconciles.begun == [(0, "a1"), (0, "a2"), (SLOW_SECONDS, "a3"), (SLOW_SECONDS, "b1")]


async def test_what_waits_without_end_in_one_group_does_not_grow_without_end() -> None:
    reconciles = Reconciles(last=1_000)
    queue = WorkQueue(reconciles, max_concurrent=2, group=lambda key: key[0])
    for number in range(100):
        queue.add(f"a{number}")
    await asyncio.sleep(500)
    assert len(reconciles.begun) == MOST_SLOW * 2
    queue.add("b")
    await asyncio.sleep(1)
    assert len(reconciles.of("b")) == 1
    await asyncio.sleep(1_000)
    # The next ones of the full group come as soon as the first have ended.
    assert len(reconciles.of("a")) > MOST_SLOW * 2
    await queue.close(grace_period=0)


async def test_nothing_is_kept_of_keys_that_are_done() -> None:
    requeue = Result(requeue=True, retry_after=5)
    reconciles = Reconciles(requeue, requeue, Result(requeue_after=3), last=3)
    queue = WorkQueue(reconciles, max_concurrent=2, group=lambda key: key[0])
    for number in range(10):
        queue.add(f"{number}")
        queue.add(f"{number}")
    await asyncio.sleep(100)
    assert len(reconciles.begun) == 13
    kept = {name: held for name, held in vars(queue).items() if isinstance(held, Sized) and len(held)}
    assert kept == {}


async def test_a_thousand_keys_make_no_thousand_tasks() -> None:
    reconciles = Reconciles()
    queue = WorkQueue(reconciles, max_concurrent=5)
    for number in range(1_000):
        queue.add(str(number))
    await asyncio.sleep(0.5)
    assert len(asyncio.all_tasks()) <= 5 + 1
    await queue.close(grace_period=5)
    assert len(reconciles.begun) == 5


async def test_nothing_begins_while_the_queue_is_held() -> None:
    reconciles = Reconciles()
    queue = WorkQueue(reconciles, max_concurrent=5)
    queue.hold()
    for key in "aab":
        queue.add(key)
    await asyncio.sleep(10)
    assert reconciles.begun == []
    queue.release()
    await asyncio.sleep(10)
    assert reconciles.begun == [(10, "a"), (10, "b")]


async def test_a_queue_that_is_closed_while_it_is_held_begins_nothing() -> None:
    reconciles = Reconciles()
    queue = WorkQueue(reconciles, max_concurrent=5)
    queue.hold()
    queue.add("a")
    await queue.close(grace_period=5)
    queue.release()
    await asyncio.sleep(10)
    assert reconciles.begun == []


async def test_what_is_told_of_a_key_at_rest_is_gathered_and_looked_at_once_and_soon() -> None:
    reconciles = Reconciles()
    queue = WorkQueue(reconciles, max_concurrent=2, at_rest=lambda _: True)
    for _ in range(3):
        queue.add_soon("a")
        await asyncio.sleep(SOON_SECONDS / 5)
    await asyncio.sleep(10)
    assert reconciles.times == [SOON_SECONDS], "the first event decides when: those that follow put nothing off"


async def test_a_key_that_is_not_at_rest_never_waits() -> None:
    reconciles = Reconciles()
    queue = WorkQueue(reconciles, max_concurrent=2, at_rest=lambda key: key == "resting")
    queue.add_soon("going on")
    queue.add_soon("resting")
    await asyncio.sleep(0.25)
    queue.add("resting")
    await asyncio.sleep(10)
    assert reconciles.begun == [(0, "going on"), (0.25, "resting")], "and an event that may not wait ends the waiting"


async def test_what_is_told_while_a_key_is_reconciled_waits_only_if_it_is_at_rest_after_that() -> None:
    reconciles, resting = Reconciles(), {"b"}
    queue = WorkQueue(reconciles, max_concurrent=2, at_rest=lambda key: key in resting)
    queue.add("a")
    queue.add("b")
    await asyncio.sleep(0.5)
    queue.add_soon("a")
    queue.add_soon("b")
    resting ^= {"a", "b"}
    await asyncio.sleep(10)
    assert reconciles.begun == [(0, "a"), (0, "b"), (1, "b"), (1 + SOON_SECONDS, "a")]


async def test_gathering_neither_puts_off_what_was_planned_earlier_nor_ends_a_backoff() -> None:
    reconciles = Reconciles(
        Result(requeue_after=0.2), Result(requeue_after=60.0), Result(requeue=True, retry_after=5.0)
    )
    queue = WorkQueue(reconciles, max_concurrent=2, at_rest=lambda _: True)
    queue.add("a")
    await asyncio.sleep(1.1)
    queue.add_soon("a")
    await asyncio.sleep(1.5)
    queue.add_soon("a")
    await asyncio.sleep(2)
    assert reconciles.times == [0, 1.2, 2.6 + SOON_SECONDS], "it comes before what was planned later"
    queue.add_soon("a")
    await asyncio.sleep(3)
    assert len(reconciles.times) == 3, "what the API server asked for is waited for"
    await queue.close(grace_period=1.0)
    queue.add_soon("a")
    await asyncio.sleep(60)
    assert len(reconciles.times) == 3
