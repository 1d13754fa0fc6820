"""Whatever happens in a cluster, and whatever breaks meanwhile: in the end a reflector has told of what is there."""

import asyncio
from collections.abc import Callable
from typing import Any

import looptime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch_operator.kube import reflector
from dispatch_operator.kube.list_watch import ListWatch
from dispatch_operator.kube.reflector import Reflector
from support.broken_streams import answers, cuts, ends, hangs, refuses, resets, sends
from support.list_watch_server import TRAIN_JOBS, Fault, ListWatchServer, Moment, event, status_of
from support.patient_loop import new_patient_loop
from support.recorder import Recorder

Step = Callable[[ListWatchServer], None]
NAMES = st.sampled_from("abcdef")
OF_A_REQUEST = [answers(404), answers(200, "<html>"), refuses(401, ""), refuses(410, "Expired"), answers(503), hangs]
OF_A_STREAM = [
    ends,
    resets,
    hangs,
    sends(b"#&!\n"),
    sends(b'{"type":"AD'),
    sends(event("ERROR", status_of(410, "Expired", "too old"))),
    sends(event("ERROR", status_of(500, "InternalError", "no"))),
    sends(event("MODIFIED", {"spec": {}})),
]


def down_and_restored(names: list[str]) -> Step:
    """Be restored from a backup; while that lasts, nothing is answered."""

    def restore(server: ListWatchServer) -> None:
        server.faults[:0] = [Fault(moment, answers(503)) for moment in (Moment.WATCH, Moment.FIRST_PAGE) for _ in "123"]
        server.hang_up()
        server.restore(10, *names)

    return restore


STEPS: st.SearchStrategy[Step | float] = st.one_of(
    NAMES.map(lambda name: lambda server: server.put(name)),
    NAMES.map(lambda name: lambda server: server.delete(name)),
    NAMES.map(lambda name: lambda server: (server.delete(name), server.put(name))),
    st.just(lambda server: server.bookmark()),
    st.just(lambda server: server.compact()),
    st.just(lambda server: server.hang_up()),
    st.builds(
        lambda moment, breaks: lambda server: server.faults.append(Fault(moment, breaks)),
        st.sampled_from([Moment.FIRST_PAGE, Moment.NEXT_PAGE, Moment.WATCH]),
        st.sampled_from([*OF_A_REQUEST, cuts, resets]),
    ),
    st.builds(
        lambda moment, breaks: lambda server: server.faults.append(Fault(moment, breaks)),
        st.sampled_from([Moment.FIRST_EVENT, Moment.NEXT_EVENT, Moment.MID_LINE, Moment.BOOKMARK]),
        st.sampled_from(OF_A_STREAM),
    ),
    st.lists(NAMES, unique=True).map(down_and_restored),
    st.floats(min_value=0.01, max_value=300),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=40))
def test_any_history_ends_in_the_right_set(monkeypatch: pytest.MonkeyPatch, steps: list[Any]) -> None:
    monkeypatch.setattr(reflector, "PAGE_LIMIT", 2)
    with asyncio.Runner(loop_factory=lambda: looptime.patch_event_loop(new_patient_loop())) as runner:
        runner.run(play(steps))


async def play(steps: list[Any]) -> None:
    server, told = ListWatchServer(), Recorder()
    server.put("a")
    async with server.serving() as cluster:
        made = Reflector(ListWatch(cluster, "TrainJob"), told, asyncio.get_running_loop().time)
        task = asyncio.create_task(made.run())
        for step in steps:
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                step(server)
        # A fault that still waits for its moment comes at one of these.
        for _ in range(4 * len(server.faults) + 1):
            server.put("z")
            server.bookmark()
            await asyncio.sleep(300)
        assert told.objects == server.objects[TRAIN_JOBS]
        assert told.wrongs == []
        assert made.state.objects == len(told.objects)
        assert told.syncs == 1
        assert not task.done()
        task.cancel()
        await asyncio.wait([task], timeout=1)
        assert task.cancelled()
