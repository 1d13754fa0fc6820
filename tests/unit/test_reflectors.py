"""Several reflectors together: which of them keep the process from being ready, and what ends it."""

import asyncio
from typing import Any

import pytest

from dispatch_operator.kube.list_watch import ListWatch
from dispatch_operator.kube.reflector import Reflector
from dispatch_operator.kube.reflectors import UNFIT_SECONDS, ReflectorEndedError, Reflectors, Supervised, UnfitError
from support.broken_streams import answers, ends, hangs
from support.list_watch_server import TRAIN_JOBS, WORKLOADS, Fault, ListWatchServer, Moment
from support.recorder import Recorder

pytestmark = pytest.mark.looptime
PATIENCE = 30.0


def reflectors(cluster: Any, **required: bool) -> Reflectors:
    clock = asyncio.get_running_loop().time
    return Reflectors(
        clock,
        *(
            Supervised(Reflector(ListWatch(cluster, kind, "team-a"), Recorder(), clock), required=needed)
            for kind, needed in required.items()
        ),
    )


async def test_each_required_reflector_that_is_not_synced_is_named_with_its_fault() -> None:
    server = ListWatchServer()
    server.faults += [Fault(Moment.FIRST_PAGE, answers(404)) for _ in range(5)]
    server.faults += [Fault(Moment.FIRST_PAGE, answers(404), WORKLOADS) for _ in range(5)]
    async with server.serving() as cluster:
        together = reflectors(cluster, TrainJob=True, Workload=False)
        # Whether the other kind is served is not known yet.
        assert together.unready(PATIENCE)[0] == "TrainJob in team-a has not been listed yet"
        task = asyncio.create_task(together.run())
        await asyncio.sleep(0.1)
        (problem,) = together.unready(PATIENCE)
        assert problem.startswith("TrainJob in team-a has not been listed yet: list TrainJob team-a failed (404): ")
        assert problem.endswith("(failed 1 times in a row)")
        # An answer comes in real time, in which virtual time goes on.
        for _ in range(1000):
            if together.unready(PATIENCE) == []:
                break
            await asyncio.sleep(1)
        assert together.unready(PATIENCE) == []
        assert [each.state.synced for each in together] == [True, True]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_one_that_the_cluster_may_lack_is_named_as_soon_as_it_is_served_and_down() -> None:
    server = ListWatchServer()
    server.faults += [Fault(Moment.FIRST_PAGE, answers(503, "down"), WORKLOADS) for _ in range(100)]
    async with server.serving() as cluster:
        together = reflectors(cluster, Workload=False)
        task = asyncio.create_task(together.run())
        await asyncio.sleep(PATIENCE)
        (problem,) = together.unready(PATIENCE)
        assert problem.startswith("Workload in team-a has not been listed yet: list Workload team-a failed (503)")
        server.faults[:] = [Fault(Moment.FIRST_PAGE, answers(404), WORKLOADS) for _ in range(100)]
        await asyncio.sleep(60)
        assert together.unready(PATIENCE) == []
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_one_that_has_been_down_for_long_is_named_and_one_that_is_renewed_soon_is_not() -> None:
    server = ListWatchServer()
    async with server.serving() as cluster:
        together = reflectors(cluster, TrainJob=True, Workload=True)
        task = asyncio.create_task(together.run())
        await asyncio.sleep(1)
        for resource, times in ((TRAIN_JOBS, 100), (WORKLOADS, 1)):
            server.faults.append(Fault(Moment.BOOKMARK, ends, resource))
            server.faults += [Fault(Moment.WATCH, answers(503, "down"), resource) for _ in range(times)]
            server.faults += [Fault(Moment.FIRST_PAGE, answers(503, "down"), resource) for _ in range(times)]
            server.bookmark(resource)
        await asyncio.sleep(PATIENCE - 1)
        assert together.unready(PATIENCE) == []
        await asyncio.sleep(2)
        (problem,) = together.unready(PATIENCE)
        assert problem.startswith("TrainJob in team-a has not been watched for 31 s: list TrainJob team-a failed (503)")
        server.faults.clear()
        await asyncio.sleep(60)
        assert together.unready(PATIENCE) == []
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()


async def test_what_holds_a_lease_gives_up_when_it_can_not_see_what_it_needs_for_long() -> None:
    server, loop = ListWatchServer(), asyncio.get_running_loop()
    server.faults += [Fault(Moment.FIRST_PAGE, answers(503, "no")) for _ in range(1_000)]
    # What the cluster may lack is no reason.
    server.faults += [Fault(Moment.FIRST_PAGE, answers(503, "no"), WORKLOADS) for _ in range(1_000)]
    async with server.serving() as cluster:
        together, cancelled = reflectors(cluster, TrainJob=True, Workload=False), asyncio.Event()

        async def works() -> None:
            try:
                await together.run()
            finally:
                cancelled.set()

        with pytest.raises(
            UnfitError, match=r"^given up after 300 s: TrainJob in team-a has not been listed yet: list"
        ):
            await together.while_fit(works())
        assert cancelled.is_set()
        assert UNFIT_SECONDS <= loop.time() <= UNFIT_SECONDS + 20


async def test_work_that_can_be_done_is_not_given_up_and_tells_how_it_ended() -> None:
    server = ListWatchServer()
    async with server.serving() as cluster:
        together = reflectors(cluster, TrainJob=True)
        watching = asyncio.create_task(together.run())

        async def fails() -> None:
            await asyncio.sleep(3 * UNFIT_SECONDS)
            raise KeyError("ours")

        with pytest.raises(KeyError, match="ours"):
            await together.while_fit(fails())
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


class Ends:
    """A reflector that ends, as none does."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    def __str__(self) -> str:
        return "JobSet"

    async def run(self) -> None:
        await asyncio.sleep(5)
        if self._error:
            raise self._error


@pytest.mark.parametrize("error", [None, KeyError("ours"), asyncio.CancelledError()])
async def test_one_that_ends_ends_all_and_is_named(error: BaseException | None) -> None:
    server, loop = ListWatchServer(), asyncio.get_running_loop()
    # The other one does not hold it up, whatever it waits for.
    server.faults.append(Fault(Moment.FIRST_PAGE, hangs))
    async with server.serving() as cluster:
        ending: Any = Ends(error)
        (other,) = reflectors(cluster, TrainJob=True)
        with pytest.raises(ReflectorEndedError, match=r"^the reflector of JobSet has ended$") as caught:
            await Reflectors(loop.time, Supervised(ending, required=False), Supervised(other, required=True)).run()
        assert loop.time() == pytest.approx(5, abs=0.01)
        assert caught.value.__cause__ is (error if isinstance(error, Exception) else None)
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("reflector of")]
