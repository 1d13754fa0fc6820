"""What a watch tells: what is kept of it, and which queues it wakes."""

import asyncio
from typing import Any

import pytest

from dispatch_operator.api.kinds import Kind
from dispatch_operator.api.label_selector import LabelSelector
from dispatch_operator.controllers.enqueue import key_of, starts_of, targets_of
from dispatch_operator.controllers.shard import Shard
from dispatch_operator.controllers.watches import WATCHES, Route, StoreAndEnqueue, is_relevant, supervised
from dispatch_operator.controllers.work_queue import WorkQueue
from dispatch_operator.kube.index import Key
from dispatch_operator.kube.known_objects import Identity
from dispatch_operator.kube.store import Store
from dispatch_operator.reconcile.actions import Result
from dispatch_operator.records.dispatch import DispatchBackend, DispatchStart
from dispatch_operator.records.kueue import Workload
from dispatch_operator.records.reading import RecordError
from dispatch_operator.records.trainer import JobSet, TrainJob
from support.builders import NAME, NAMESPACE, make_backend, make_start
from support.records import watched

pytestmark = pytest.mark.looptime
Object = dict[str, Any]
START = Key(NAMESPACE, "llama-s1")


def identified(obj: Object) -> Object:
    """Give an object of the builders a UID and a resourceVersion."""
    return obj | {"metadata": {"uid": f"uid-of-{obj['metadata']['name']}", "resourceVersion": "1"} | obj["metadata"]}


class Watched:
    """A handler of each kind over one store, and two queues: of starts, and of names."""

    def __init__(self) -> None:
        self.store = Store()
        self.woken: list[tuple[str, Key]] = []
        routes = [Route(self._queue("start"), starts_of), Route(self._queue("name"), targets_of)]
        self.handlers = {watch.kind: StoreAndEnqueue(watch.kind, self.store, routes) for watch in WATCHES}

    def _queue(self, what: str) -> WorkQueue[Key]:
        async def reconcile(key: Key) -> Result:
            self.woken.append((what, key))
            return Result()

        return WorkQueue(reconcile, max_concurrent=10)

    async def tell(self, obj: Object) -> list[tuple[str, Key]]:
        """Tell of an object; return whom it woke."""
        self.handlers[Kind(obj["kind"])].added_or_modified(obj, listed=False)
        return await self.whom()

    async def delete(self, obj: Object) -> list[tuple[str, Key]]:
        """Tell that an object is gone; return whom it woke."""
        meta = obj["metadata"]
        self.handlers[Kind(obj["kind"])].deleted(Identity(meta["namespace"], meta["name"], meta["uid"]))
        return await self.whom()

    async def whom(self) -> list[tuple[str, Key]]:
        await asyncio.sleep(1)
        woken = sorted(self.woken)
        self.woken.clear()
        return woken


def made(kind: str, name: str, version: int = 1, **fields: Any) -> Object:
    meta = {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}", "resourceVersion": str(version)}
    return {"kind": kind, "metadata": meta | fields.pop("metadata", {}), **fields}


async def test_an_object_is_kept_and_wakes_whom_it_concerns_until_it_is_gone() -> None:
    world = Watched()
    assert await world.tell(identified(make_start())) == [("name", Key(NAMESPACE, NAME)), ("start", START)]
    job = made("TrainJob", NAME)
    assert await world.tell(job) == [("name", Key(NAMESPACE, NAME)), ("start", START)]
    assert world.store.get(TrainJob, NAMESPACE, NAME)
    assert await world.delete(job) == [("name", Key(NAMESPACE, NAME)), ("start", START)]
    assert world.store.get(TrainJob, NAMESPACE, NAME) is None
    assert await world.delete(job) == []


async def test_the_end_of_an_object_that_was_made_anew_harms_the_new_one_not() -> None:
    world = Watched()
    await world.tell(made("TrainJob", NAME, metadata={"uid": "the new one"}))
    assert await world.delete(made("TrainJob", NAME)) == []
    assert world.store.get(TrainJob, NAMESPACE, NAME)


async def test_an_object_that_can_not_be_read_is_not_kept_and_harms_no_other() -> None:
    world = Watched()
    await world.tell(identified(make_start()))
    with pytest.raises(RecordError, match="it is no TrainJob"):
        await world.tell(made("TrainJob", NAME, spec="no object"))
    assert await world.tell(made("TrainJob", NAME, version=2))


async def test_what_a_live_read_did_not_find_still_wakes_others_when_its_end_is_told() -> None:
    world = Watched()
    start, backend = identified(make_start()), identified(make_backend())
    await world.tell(start)
    await world.tell(backend)
    for obj in (start, backend):
        held = world.store.get(*_place(obj))
        assert held
        world.store.drop_unfound(held)
        assert world.store.get(*_place(obj)) is None
        world.store.drop_unfound(held)
    assert await world.delete(start) == [("name", Key(NAMESPACE, NAME)), ("start", START)]
    assert await world.delete(start) == []
    await world.tell(start)
    assert await world.delete(backend) == [("start", START)]


def _place(obj: Object) -> tuple[type[DispatchStart | DispatchBackend], str, str]:
    record = watched(obj)
    return type(record), *key_of(record)  # type: ignore[return-value]


async def test_what_was_dropped_wrongly_comes_back_with_its_next_version() -> None:
    world = Watched()
    await world.tell(identified(make_start()))
    held = world.store.get(DispatchStart, *START)
    assert held
    world.store.drop_unfound(held)
    await world.tell(identified(make_start()))
    assert world.store.get(DispatchStart, *START)
    world.store.drop(held)
    assert world.store.held(Kind.DISPATCH_START, START, held.metadata.uid) is None


CHECKED = {"status": {"admissionChecks": [{"name": "dispatch"}]}}
OWNED = {"metadata": {"ownerReferences": [{"kind": "TrainJob", "name": NAME, "uid": "u"}]}}


@pytest.mark.parametrize(
    ("kind", "raw", "want"),
    [
        ("TrainJob", made("TrainJob", NAME), True),
        ("TrainJob", made("TrainJob", "llama"), False),
        ("TrainJob", made("TrainJob", NAME.upper()), False),
        ("TrainJob", made("TrainJob", f"{NAME}-a"), False),
        ("TrainJob", made("TrainJob", NAME[:-1] + "0"), False),
        ("TrainJob", made("TrainJob", NAME[:-1] + "999999"), True),
        ("TrainJob", made("TrainJob", NAME[:-1] + "1000000"), False),
        ("JobSet", made("JobSet", NAME), True),
        ("JobSet", made("JobSet", "another"), False),
        ("Workload", made("Workload", "w"), False),
        ("Workload", made("Workload", "w", **CHECKED), True),
        ("Workload", made("Workload", "w", **OWNED), True),
        ("Workload", made("Workload", "w", status={"admissionChecks": []}, **OWNED), True),
        ("Workload", made("Workload", "w", status={"admissionChecks": []}), False),
        ("Workload", made("Workload", "w", metadata={"ownerReferences": [{"kind": "Job", "name": NAME}]}), False),
        ("Workload", made("Workload", "w", metadata={"ownerReferences": [{"kind": "TrainJob", "name": "x"}]}), False),
        ("Workload", made("Workload", "w", metadata={"ownerReferences": ["no object", None]}), False),
        ("TrainingRuntime", made("TrainingRuntime", "torch"), True),
        ("DispatchStart", made("DispatchStart", "any"), True),
    ],
)
async def test_what_can_never_matter_is_not_kept(kind: str, raw: Object, *, want: bool) -> None:
    assert is_relevant(Kind(kind), raw) is want
    world = Watched()
    await world.tell(raw)
    assert (
        world.store.held(Kind(kind), Key(NAMESPACE, raw["metadata"]["name"]), raw["metadata"]["uid"]) is not None
    ) is want


async def test_what_no_longer_matters_is_forgotten() -> None:
    world = Watched()
    await world.tell(identified(make_start()))
    workload = made("Workload", "w", status=CHECKED["status"])
    await world.tell(workload)
    assert world.store.get(Workload, NAMESPACE, "w")
    await world.tell(made("Workload", "w", version=2))
    assert world.store.get(Workload, NAMESPACE, "w") is None
    assert await world.delete(workload) == []


async def test_thousands_of_others_leave_nothing_behind() -> None:
    world = Watched()
    for number in range(5_000):
        for kind in ("TrainJob", "JobSet", "Workload"):
            world.handlers[Kind(kind)].added_or_modified(
                made(kind, f"other-{number}", spec={"text": "x" * 100}), listed=True
            )
    kinds = (TrainJob, JobSet, Workload)
    assert not any(world.store.get(kind, NAMESPACE, f"other-{number}") for kind in kinds for number in range(5_000))
    assert await world.whom() == []


@pytest.mark.parametrize(
    ("namespaces", "want"),
    [
        ((), [str(watch.kind) for watch in WATCHES]),
        (
            ("a", "b"),
            [
                shown
                for watch in WATCHES
                if watch.kind is not Kind.ADMISSION_CHECK
                for shown in (
                    [str(watch.kind)]
                    if watch.kind is Kind.CLUSTER_TRAINING_RUNTIME
                    else [f"{watch.kind} in a", f"{watch.kind} in b"]
                )
            ],
        ),
    ],
)
async def test_each_kind_has_a_reflector_for_each_namespace(namespaces: tuple[str, ...], want: list[str]) -> None:
    client: Any = None
    store = Store()
    found = list(supervised(client, store, [], namespaces, clock=lambda: 0.0, shard=Shard(store, LabelSelector())))
    assert [str(each.reflector) for each in found] == want
    # A cluster may lack Kueue.
    lacking = {str(each.reflector).split(maxsplit=1)[0] for each in found if not each.required}
    assert lacking == {"Workload", "AdmissionCheck"} - ({"AdmissionCheck"} if namespaces else set())


async def test_what_is_told_of_the_operators_own_write_is_not_read_again_but_a_list_always_is() -> None:
    world = Watched()
    start = identified(make_start())
    await world.tell(start)
    written = identified(make_start())
    written["metadata"]["resourceVersion"] = "2"
    world.store.put_written(watched(written))
    held = world.store.get(DispatchStart, *START)
    assert await world.tell(written) == [("name", Key(NAMESPACE, NAME))], "others still hear of it"
    assert world.store.get(DispatchStart, *START) is held
    # After a restore of etcd another state may bear the same version.
    world.handlers[Kind.DISPATCH_START].added_or_modified(written, listed=True)
    assert world.store.get(DispatchStart, *START) is not held
    written["metadata"]["resourceVersion"] = "3"
    await world.tell(written)
    assert world.store.get(DispatchStart, *START).metadata.resource_version == "3"  # type: ignore[union-attr]
