"""What a proof rests on, when it is made again, and the status that tells of it."""

from typing import Any

import pytest

from dispatch_operator.api import times
from dispatch_operator.api.enums import BackendGate, BackendState
from dispatch_operator.api.models.status import GateState
from dispatch_operator.checks.backend import observe_only_problems
from dispatch_operator.preflight.ulid import RANDOM_BITS, ulid
from dispatch_operator.reconcile.backend import status as backend_status
from dispatch_operator.reconcile.backend.proof import (
    basis,
    changed_since,
    expires_in,
    is_proven,
    last_probed,
    why_again,
)
from dispatch_operator.reconcile.events import events
from support.builders import make_backend, make_runtime, make_start
from support.kstatus import Kstatus
from support.operator import NOW
from support.records import backend_of, runtime_of
from support.rendering import target_name

Object = dict[str, Any]
PROVEN: dict[BackendGate, str | None] = dict.fromkeys(BackendGate)
FAILED = {**PROVEN, BackendGate.START_GATE: "a pod came through"}
SERVED: dict[str, str | None] = {"trainer.kubeflow.org/v1alpha1": "abc", "jobset.x-k8s.io/v1alpha2": None}


def backend(generation: int = 1) -> Object:
    made = make_backend()
    made["metadata"] |= {"generation": generation, "uid": "u", "resourceVersion": "1"}
    return made | {"status": {"observedGeneration": -1}}


def runtime(uid: str = "r", generation: int = 1) -> Object:
    made = make_runtime()
    made["metadata"] |= {"uid": uid, "generation": generation}
    return made


def ground(version: str = "1.0", of: Object | None = None, run: Object | None = None, **served: str) -> Any:
    return basis(version, backend_of(of or backend()), runtime_of(run or runtime()), {**SERVED, **served})


def probed(found: dict[BackendGate, str | None] = PROVEN) -> Object:
    held = backend()
    return held | {"status": backend_status.concluded(backend_of(held), found, ground(), NOW).as_json()}


@pytest.mark.parametrize(
    ("what", "now_rests_on", "held", "later", "want"),
    [
        ("nothing", ground(), probed(), 0, None),
        ("almost a day", ground(), probed(), 86_399, None),
        ("a day", ground(), probed(), 86_400, "older than a day"),
        ("a new backend", ground(), backend(), 0, "not been probed"),
        ("a failed probe", ground(), probed(FAILED), 0, "not proven"),
        ("another operator", ground("1.1"), probed(), 0, "operator's version"),
        ("another spec", ground(of=backend(2)), probed(), 0, "backend's spec"),
        ("another runtime", ground(run=runtime("s")), probed(), 0, "probe runtime"),
        ("an edited runtime", ground(run=runtime("r", 2)), probed(), 0, "probe runtime"),
        ("a served API", ground(**{"jobset.x-k8s.io/v1alpha2": "def"}), probed(), 0, "served API"),
    ],
)
def test_a_proof_is_made_again_when(what: str, now_rests_on: Any, held: Object, later: float, want: str | None) -> None:
    why = why_again(backend_of(held), now_rests_on, NOW + later)
    assert (why is None) == (want is None), what
    assert (want or "") in (why or "")
    expected = want is not None and not any(word in want for word in ("day", "not proven"))
    assert changed_since(backend_of(held), now_rests_on) == expected


def test_a_doubt_asks_for_a_proof_at_once() -> None:
    held = probed()
    held["status"] = backend_status.marked_unproven(
        backend_of(held), BackendGate.FIELDS_KEPT, "DispatchStart a failed: b", NOW + 1
    ).as_json()
    assert why_again(backend_of(held), ground(), NOW + 1) == "a Start found a gate that does not hold"
    assert changed_since(backend_of(held), ground())
    assert not is_proven(backend_of(held))
    assert "proof" not in held["status"]
    (entry,) = [gate for gate in held["status"]["gates"] if not gate["proven"]]
    assert entry == {
        "name": "fields-kept",
        "proven": False,
        "reason": "DispatchStart a failed: b",
        "lastProbeTime": "2026-01-01T00:00:00Z",
    }


def test_a_missing_runtime_and_an_api_that_is_not_served_are_left_out() -> None:
    status = basis("1.0", backend_of(backend()), None, SERVED).as_proof().as_json()
    assert status["runtime"] == {"kind": "ClusterTrainingRuntime", "name": "torch-dispatch"}
    assert status["served"] == [
        {"api": "jobset.x-k8s.io/v1alpha2"},
        {"api": "trainer.kubeflow.org/v1alpha1", "hash": "abc"},
    ]


def test_the_probe_runtimes_kind_has_a_default() -> None:
    assert backend_of(make_backend(probeRuntime={"name": "a"})).probe_runtime == ("ClusterTrainingRuntime", "a")
    assert backend_of(make_backend(probeRuntime=5)).probe_runtime == ("ClusterTrainingRuntime", "")


def test_the_oldest_gate_counts() -> None:
    held = probed()
    assert (last_probed(backend_of(held), NOW), expires_in(backend_of(held), NOW)) == (NOW, 86_400)
    held["status"]["gates"][1]["lastProbeTime"] = "never"
    assert (last_probed(backend_of(held), NOW), expires_in(backend_of(held), NOW)) == (NOW, 86_400 - NOW)
    assert last_probed(backend_of(backend()), NOW) == 0.0


def test_a_gate_that_was_not_probed_says_no_time_of_a_probe() -> None:
    lacking = {
        **dict.fromkeys(BackendGate, backend_status.NOT_PROBED),
        BackendGate.FIELDS_KEPT: "spec.trainer.env is not served",
    }
    first = backend() | {"status": backend_status.concluded(backend_of(backend()), lacking, ground(), NOW).as_json()}
    assert [gate.get("lastProbeTime") for gate in first["status"]["gates"]] == ["2026-01-01T00:00:00Z", None, None]
    # What was probed before keeps its time, and another probe waits for the last one, whatever it left out.
    again = backend_status.concluded(backend_of(probed()), lacking, ground(), NOW + 60).as_json()
    assert [gate["lastProbeTime"][14:19] for gate in again["gates"]] == ["01:00", "00:00", "00:00"]
    assert last_probed(backend_of(first), NOW) == NOW


def test_a_time_that_lies_ahead_proves_nothing() -> None:
    """A clock that was two days ahead, once, must not keep a gate proven for three days."""
    held = probed()
    two_clocks, wrong_clock = times.written(NOW + 59), times.written(NOW + 172_800)
    held["status"]["gates"][1]["lastProbeTime"] = two_clocks
    assert why_again(backend_of(held), ground(), NOW) is None
    held["status"]["gates"][1]["lastProbeTime"] = wrong_clock
    assert why_again(backend_of(held), ground(), NOW) == "the proof is older than a day"
    for gate in held["status"]["gates"]:
        gate["lastProbeTime"] = wrong_clock
    assert last_probed(backend_of(held), NOW) == 0.0


@pytest.mark.parametrize(
    ("what", "held", "status", "want", "kstatus_says"),
    [
        (
            "probing for the first time",
            backend(),
            lambda held: backend_status.probing(backend_of(held), "it is new", NOW).as_json(),
            {"Ready": ("Unknown", "Probing"), "Reconciling": ("True", "Probing")},
            "InProgress",
        ),
        (
            "probing again",
            probed(),
            lambda held: backend_status.probing(backend_of(held), "it is old", NOW).as_json(),
            {"Ready": ("True", "Proven"), "Reconciling": ("True", "Probing")},
            "InProgress",
        ),
        (
            "undecided",
            backend(),
            lambda held: backend_status.undecided(backend_of(held), "no answer", NOW).as_json(),
            {"Ready": ("Unknown", "Probing"), "Reconciling": ("True", "Probing")},
            "InProgress",
        ),
        (
            "proven",
            backend(),
            lambda held: backend_status.concluded(backend_of(held), PROVEN, ground(), NOW).as_json(),
            {"Ready": ("True", "Proven")},
            "Current",
        ),
        (
            "observe-only",
            probed(),
            lambda held: backend_status.concluded(backend_of(held), FAILED, ground(), NOW).as_json(),
            {"Ready": ("False", "ObserveOnly"), "Reconciling": ("True", "ObserveOnly")},
            "InProgress",
        ),
        (
            "closed before its first probe",
            backend() | {"spec": {**backend()["spec"], "state": "Closed"}},
            lambda held: backend_status.not_probed(backend_of(held), BackendState.CLOSED, NOW).as_json(),
            {"Ready": ("True", "Closed")},
            "Current",
        ),
        (
            "closed",
            probed() | {"spec": {**backend()["spec"], "state": "Closed"}},
            lambda held: backend_status.not_probed(backend_of(held), BackendState.CLOSED, NOW).as_json(),
            {"Ready": ("True", "Closed")},
            "Current",
        ),
        (
            "read-only, with a gate that is not proven",
            probed(FAILED) | {"spec": {**backend()["spec"], "state": "ReadOnly"}},
            lambda held: backend_status.not_probed(backend_of(held), BackendState.READ_ONLY, NOW).as_json(),
            {"Ready": ("True", "ReadOnly")},
            "Current",
        ),
    ],
)
def test_a_status_tells_how_far_it_is(
    what: str, held: Object, status: Any, want: dict[str, tuple[str, str]], kstatus_says: str, kstatus: Kstatus
) -> None:
    written = status(held)
    assert {entry["type"]: (entry["status"], entry["reason"]) for entry in written["conditions"]} == want, what
    assert written["observedGeneration"] == 1
    assert all(entry["observedGeneration"] == 1 for entry in written["conditions"])
    assert kstatus.of(held | {"status": written}) == kstatus_says
    if "probing" in what or "closed" in what:
        assert written.get("gates") == held["status"].get("gates")
        assert written.get("proof") == held["status"].get("proof")


def test_an_unseen_backend_is_in_progress(kstatus: Kstatus) -> None:
    assert kstatus.of(backend()) == "InProgress"


def test_a_long_reason_is_cut() -> None:
    held = backend()
    written = backend_status.concluded(
        backend_of(held), {**PROVEN, BackendGate.COLLECTED: "x" * 40_000}, ground(), NOW
    ).as_json()
    assert len(written["gates"][2]["reason"]) < 9_000
    assert "40000 characters" in written["gates"][2]["reason"]


def test_events_tell_of_transitions_only() -> None:
    new, good, bad = backend(), probed(), probed(FAILED)
    other = probed({**PROVEN, BackendGate.COLLECTED: "it stays"})
    probing = good | {"status": backend_status.probing(backend_of(good), "it is old", NOW).as_json()}

    def told(before: Object, after: Object) -> list[tuple[str, str]]:
        return [(event.type, event.reason) for event in events(backend_of(before), backend_of(after))]

    assert told(new, good) == [("Normal", "Proven")]
    assert told(new, bad) == told(good, bad) == told(bad, other) == [("Warning", "ObserveOnly")]
    assert told(good, good) == told(bad, bad) == told(good, probing) == told(probing, good) == []


@pytest.mark.parametrize("status", [None, "wrong", {}, {"gates": None}, {"gates": "wrong"}, {"gates": ["wrong"]}])
def test_a_status_that_nobody_would_write_has_no_gates(status: Any) -> None:
    assert backend_of({**backend(), "status": status}).status.gates == ()


def test_a_gate_without_a_reason_is_named_all_the_same() -> None:
    (problem,) = observe_only_problems("default", [GateState(BackendGate.COLLECTED, proven=False, last_probe_time="")])
    assert str(problem) == 'state: the DispatchBackend "default" is observe-only: collected is not proven'


@pytest.mark.parametrize(("now", "random"), [(0.0, 0), (NOW, 1), (281_474_976_710.655, (1 << RANDOM_BITS) - 1)])
def test_a_probes_job_id_is_a_ulid(now: float, random: int) -> None:
    job = ulid(now, random)
    assert target_name(make_start(job=job)) == f"dj-{job.lower()}-s1"


def test_a_ulid_begins_with_its_time_and_ends_with_its_chance() -> None:
    assert ulid(1_469_918_176.385, 0) == "01ARYZ6S410000000000000000"
    assert ulid(0, 31) == "0" * 25 + "Z"
