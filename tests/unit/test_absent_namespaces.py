"""Namespaces that do not exist, go and come: they harm no other, and nobody is called for them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dispatch_operator.api.kinds import Kind
from dispatch_operator.controllers.collector import OperatorCollector
from dispatch_operator.kube import list_watch
from dispatch_operator.kube.list_watch import ListWatch
from dispatch_operator.kube.presence import Presence
from dispatch_operator.kube.reflector import NAMESPACE_SECONDS, Reflector
from dispatch_operator.kube.reflectors import UNFIT_SECONDS, Reflectors, Supervised, UnfitError
from dispatch_operator.kube.store import Store
from dispatch_operator.metrics.exposition import exposition
from support.list_watch_server import TRAIN_JOBS, ListWatchServer
from support.recorder import Recorder

pytestmark = pytest.mark.looptime
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def _without_bookmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake server sends no bookmark each minute."""
    monkeypatch.setattr(list_watch, "SILENT_SECONDS", 3600.0)


class Two:
    """Reflectors of TrainJobs in team-a and team-b, and what they have told."""

    def __init__(self, server: ListWatchServer, cluster: Any) -> None:
        clock = asyncio.get_running_loop().time
        self.told = {namespace: Recorder() for namespace in ("team-a", "team-b")}
        self.reflectors = [
            Reflector(ListWatch(cluster, Kind.TRAIN_JOB, one), self.told[one], clock) for one in self.told
        ]
        self.together = Reflectors(clock, *(Supervised(each, required=True) for each in self.reflectors))
        self._server = server

    def names(self, namespace: str) -> set[str]:
        return {name for _, name in self.told[namespace].objects}

    def asked(self, namespace: str) -> int:
        """Return how often TrainJobs of a namespace were listed or watched."""
        return sum(request.namespace == namespace for request in self._server.requests)


@asynccontextmanager
async def two(server: ListWatchServer) -> AsyncIterator[Two]:
    server.put("one", namespace="team-a")
    async with server.serving() as cluster:
        made = Two(server, cluster)
        task = asyncio.create_task(made.together.run())
        await asyncio.sleep(1)
        yield made
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert all(told.wrongs == [] for told in made.told.values())


async def test_one_that_does_not_exist_yet_is_told_of_and_keeps_nothing_from_being_ready(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    server = ListWatchServer(namespaces={"team-b": Presence.ABSENT})
    async with two(server) as made:
        await asyncio.wait_for(made.together.listed(), 1)
        assert made.names("team-a") == {"one"}
        await asyncio.sleep(2 * UNFIT_SECONDS)
        assert made.together.unready(PATIENCE) == []
        assert made.together.absences() == ["namespace team-b does not exist"]
        # Its list was asked for once: whether it exists is asked from then on.
        assert made.asked("team-b") == 1
        told = [(one.levelname, one.getMessage()) for one in caplog.records if one.name.startswith("dispatch_operator")]
        assert told == [("INFO", "TrainJob in team-b is not watched: the namespace does not exist")]


async def test_one_that_comes_is_watched_within_seconds() -> None:
    server = ListWatchServer(namespaces={"team-b": Presence.ABSENT})
    async with two(server) as made:
        await asyncio.sleep(600)
        del server.namespaces["team-b"]
        server.put("two", namespace="team-b")
        await asyncio.sleep(NAMESPACE_SECONDS + 1)
        assert made.names("team-b") == {"two"}
        assert made.together.absences() == []
        assert made.together.unready(PATIENCE) == []


async def test_what_was_in_one_that_goes_is_told_as_deleted_and_what_comes_again_is_told_anew() -> None:
    server = ListWatchServer()
    server.put("two", namespace="team-b")
    async with two(server) as made:
        assert made.names("team-b") == {"two"}
        server.namespaces["team-b"] = Presence.LEAVING
        server.hang_up()
        await asyncio.sleep(UNFIT_SECONDS)
        # Nobody has said that it is gone.
        assert made.names("team-b") == {"two"}
        assert made.together.absences() == ["namespace team-b is being deleted"]
        assert made.together.unready(PATIENCE) == []
        server.namespaces["team-b"] = Presence.ABSENT
        server.objects[TRAIN_JOBS].pop(("team-b", "two"))
        await asyncio.sleep(NAMESPACE_SECONDS + 1)
        assert made.names("team-b") == set()
        del server.namespaces["team-b"]
        server.put("two", namespace="team-b")
        await asyncio.sleep(NAMESPACE_SECONDS + 1)
        assert made.names("team-b") == {"two"}
        # The other one was watched all the time.
        assert made.told["team-a"].log == [("put", "one", "102")]


async def test_one_that_gives_no_rights_makes_unready_but_no_lease_is_given_up_for_it() -> None:
    server = ListWatchServer(forbidden={"team-b"})
    async with two(server) as made:

        async def serves() -> None:
            await asyncio.sleep(3 * UNFIT_SECONDS)
            raise KeyError("ours")

        with pytest.raises(KeyError, match="ours"):
            await made.together.while_fit(serves())
        (problem,) = made.together.unready(PATIENCE)
        assert problem.startswith("TrainJob in team-b has not been listed yet: list TrainJob team-b failed (403)")
        assert made.together.absences() == []
        server.forbidden.clear()
        await asyncio.sleep(60)
        assert made.together.unready(PATIENCE) == []
        # What is no lack of rights is a reason, there too.
        server.forbidden.add("team-b")
        server.hang_up()
        await asyncio.sleep(60)
        assert made.reflectors[1].state.forbidden
        server.forbidden.clear()
        await asyncio.sleep(60)
        assert not made.reflectors[1].state.forbidden


async def test_one_that_may_not_be_read_counts_as_existing() -> None:
    server = ListWatchServer(namespaces={"team-b": Presence.ABSENT}, unreadable_namespaces=True)
    async with two(server) as made:
        await asyncio.sleep(60)
        assert made.together.absences() == []
        assert len(made.together.unready(PATIENCE)) == 1


async def test_a_namespace_that_has_just_come_has_a_while_to_be_given_rights() -> None:
    server = ListWatchServer(namespaces={"team-b": Presence.ABSENT})
    async with two(server) as made:
        await asyncio.sleep(600)
        del server.namespaces["team-b"]
        server.forbidden.add("team-b")
        await asyncio.sleep(PATIENCE / 2)
        assert made.together.unready(PATIENCE) == []
        await asyncio.sleep(PATIENCE)
        assert len(made.together.unready(PATIENCE)) == 1


async def test_the_metrics_tell_of_it_and_no_watch_counts_as_down() -> None:
    server = ListWatchServer(namespaces={"team-b": Presence.ABSENT})
    async with two(server) as made:
        await asyncio.sleep(1)
        text = exposition("", OperatorCollector({}, made.together, Store()))[0].decode()
        assert 'dispatch_namespace_exists{namespace="team-a"} 1.0' in text
        assert 'dispatch_namespace_exists{namespace="team-b"} 0.0' in text
        assert 'dispatch_watch_up{kind="TrainJob",namespace="team-a"} 1.0' in text
        assert 'dispatch_watch_up{kind="TrainJob",namespace="team-b"}' not in text


async def test_what_is_wrong_in_the_cluster_is_a_reason_to_give_a_lease_up() -> None:
    server = ListWatchServer(forbidden={""})
    async with server.serving() as cluster:
        clock = asyncio.get_running_loop().time
        together = Reflectors(
            clock, Supervised(Reflector(ListWatch(cluster, Kind.TRAIN_JOB), Recorder(), clock), required=True)
        )
        with pytest.raises(UnfitError, match=r"\(403\)"):
            await together.while_fit(together.run())
