"""What GitOps tools make of a DispatchStart, from before it is seen to its end."""

import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dispatch_operator.api.enums import ErrorClass
from support import flux
from support.argo_cd import checks, health
from support.builders import NAME, NAMESPACE, make_backend, make_condition, make_runtime, make_start
from support.fake_api import FakeApi, always, refusal, unanswered
from support.faults.fault import FAULTS, Lasts, Says
from support.faults.faulty_api import FaultPlan, FaultyApi
from support.faults.play import clean, play
from support.faults.scenarios import SCENARIOS, FaultScenario
from support.kstatus import Kstatus
from support.operator import FakeOperator

Object = dict[str, Any]
JOB = "TrainJob"
ARGO_CD = {"InProgress": "Progressing", "Failed": "Degraded", "Current": "Healthy"}
"""What Argo CD calls what kstatus says."""
GITOPS = Path(__file__).parents[2] / "docs" / "gitops.md"
EXTENSIONS = make_start()["spec"]["request"]["spec"]["extensions"]
STARTED_ALL_THE_SAME = {"Failed", "Cancelled", "Lost", "Holding"}
"""What the expressions for Flux, which ask for the start alone, see otherwise."""


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == "DispatchStart" else {}))
    return api


def table() -> dict[str, str]:
    """Return what docs/gitops.md says that kstatus makes of each phase."""
    rows = [
        line.split(" | ")
        for line in GITOPS.read_text().splitlines()
        if line.startswith("| ") and "DispatchStart that" not in line
    ]
    shown = [(cells[0], cells[1]) for cells in rows if cells[1] in {"InProgress", "Current", "Failed"}]
    found = {phase: status for cell, status in shown for phase in re.findall("`([A-Z][A-Za-z]+)`", cell)}
    others = ("not yet looked at", "a gate that is being moved")
    return found | {other: next(status for cell, status in shown if other in cell) for other in others}


def spec(api: FakeApi, **fields: Any) -> None:
    api.edit("DispatchStart", lambda start: start["spec"].update(fields))


def job(api: FakeApi, kind: str, jobs: list[Object] | None = None) -> None:
    status = {"conditions": [{"type": kind, "status": "True", "reason": "R", "message": "m"}], "jobsStatus": jobs or []}
    api.edit(JOB, lambda held: held.update(status=status))


def test_an_object_that_nobody_has_seen_is_in_progress(api: FakeApi, kstatus: Kstatus) -> None:
    assert table()["not yet looked at"] == "InProgress"
    assert kstatus.of(api.one("DispatchStart")) == "InProgress"
    assert flux.health(api.one("DispatchStart")) == "InProgress"
    assert health(api.one("DispatchStart")) == ("Progressing", "waits for the operator to look at it")


@pytest.mark.parametrize(
    ("phase", "before", "after", "want"),
    [
        ("Gated", None, None, "Current"),
        ("Queued", None, lambda api: spec(api, gate="Open"), "Current"),
        (
            "Running",
            lambda api: spec(api, gate="Open"),
            lambda api: job(api, "Resumed", [{"name": "node", "ready": 1}]),
            "Current",
        ),
        ("Held", lambda api: spec(api, gate="Open"), lambda api: spec(api, gate="Held"), "Current"),
        (
            "Holding",
            lambda api: spec(api, gate="Open"),
            lambda api: (
                setattr(api, "before", always("patch", JOB, unanswered("patch"))),
                spec(api, gate="Held"),
            ),
            "InProgress",
        ),
        ("Succeeded", None, lambda api: job(api, "Complete"), "Current"),
        ("Failed", None, lambda api: job(api, "Failed"), "Failed"),
        ("Lost", None, lambda api: api.objects.pop((JOB, NAMESPACE, NAME)), "Failed"),
        ("Cancelled", None, lambda api: spec(api, gate="Cancelled"), "Failed"),
        ("Cancelled", lambda api: spec(api, gate="Cancelled"), None, "Failed"),
        ("Refused", lambda api: spec(api, request={}), None, "Failed"),
        ("Pending", lambda api: api.objects.pop(("DispatchBackend", NAMESPACE, "default")), None, "InProgress"),
        (
            "Starting",
            lambda api: setattr(api, "before", always("create", JOB, refusal("create", JOB, 429, "Slow", "later"))),
            None,
            "InProgress",
        ),
        ("InFlight", lambda api: setattr(api, "before", always("create", JOB, unanswered())), None, "InProgress"),
        (
            "Stopping",
            lambda api: (
                setattr(api, "admit", lambda request, body: {**body, "spec": {}} if request.kind == JOB else body),
                setattr(api, "before", always("delete", JOB, unanswered("delete"))),
            ),
            None,
            "InProgress",
        ),
    ],
)
async def test_each_phase_reads_as_it_should(
    api: FakeApi,
    kstatus: Kstatus,
    phase: str,
    before: Callable[[FakeApi], Any] | None,
    after: Callable[[FakeApi], Any] | None,
    want: str,
) -> None:
    operator = FakeOperator(api)
    for change in (before, after):
        if change:
            change(api)
        await operator.reconcile()
        # A watch has told of what there is.
        await operator.reconcile()
    start = operator.start()
    assert (start["status"]["phase"], kstatus.of(start)) == (phase, want)
    assert table()[phase] == want
    shown, message = health(start)
    assert (shown, message.split(": ")[0]) == (ARGO_CD[want], phase)
    assert flux.health(start) == ("Current" if phase in STARTED_ALL_THE_SAME else want)


def asks_for(**fields: Any) -> FaultScenario:
    """Return a scenario in which the job asks for what it can't have."""

    def before(world: FaultyApi) -> None:
        world.edit("DispatchStart", lambda start: start["spec"]["request"]["spec"].update(fields))

    return FaultScenario(f"a job asks for {fields}", before=before)


ASKS_TOO_MUCH = (asks_for(nodes=0), asks_for(extensions={**EXTENSIONS, "other/Thing": {}}))


class Recorded:
    """Every status of a DispatchStart that was written while scenarios were played, each once by its words."""

    def __init__(self) -> None:
        self.by_words: dict[tuple[Any, ...], Object] = {}

    def told(self, kind: str, obj: Object, *, deleted: bool) -> None:
        status = obj.get("status", {})
        if kind == "DispatchStart" and not deleted and "phase" in status:
            words = [(one["type"], one["status"], one["reason"]) for one in status["conditions"]]
            self.by_words.setdefault((status["phase"], *words), deepcopy(obj))

    def attend(self, scenario: FaultScenario) -> FaultScenario:
        """Return a scenario whose statuses are recorded."""

        def before(world: FaultyApi) -> None:
            scenario.before(world)
            world.watchers.append(self)

        return replace(scenario, before=before)


@pytest.mark.looptime
async def test_every_status_that_is_ever_recorded_reads_as_the_table_says(kstatus: Kstatus) -> None:
    recorded = Recorded()
    unanswered = next(fault for fault in FAULTS if fault.says is Says.NOT_KNOWN)
    for scenario in (*SCENARIOS, *ASKS_TOO_MUCH):
        await play(recorded.attend(scenario), "Never", FaultPlan())
        # Where each request goes unanswered for long, what is not known is told.
        for place in range(len((await clean(scenario, "OnChange")).requests)):
            await play(recorded.attend(scenario), "OnChange", FaultPlan(place, unanswered, Lasts.A_WHILE))
    starts = list(recorded.by_words.values())
    shown = kstatus.of_all(starts)
    assert [(start["status"], read) for start, read in zip(starts, shown, strict=True) if read != expected(start)] == []
    # Phases that only people bring about, at their leisure, are among the rows above.
    phases = {start["status"]["phase"] for start in starts}
    assert phases >= {"Pending", "Starting", "InFlight", "Stopping", "Refused", "Gated", "Queued", "Failed", "Lost"}
    classes = {one["reason"] for start in starts for one in start["status"]["conditions"]}
    assert classes >= set(ErrorClass)


def expected(start: Object) -> str:
    """Return what docs/gitops.md says of a DispatchStart."""
    status, meta = start["status"], start["metadata"]
    if "deletionTimestamp" in meta:
        return "Terminating"
    if status["observedGeneration"] != meta["generation"]:
        return table()["not yet looked at"]
    being_moved = any(one["type"] == "Reconciling" for one in status["conditions"])
    return table()["a gate that is being moved"] if being_moved else table()[status["phase"]]


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        ([], ("Progressing", "waits for the operator to look at it")),
        ([make_condition("Ready", message="every gate is proven")], ("Healthy", "every gate is proven")),
        ([make_condition("Ready", "Unknown", message="being probed")], ("Progressing", "being probed")),
        (
            [make_condition("Ready", "False"), make_condition("Reconciling", message="probed again")],
            ("Progressing", "probed again"),
        ),
    ],
)
def test_a_backend_is_shown_by_the_same_check(conditions: list[Object], want: tuple[str, str]) -> None:
    backend = make_backend()
    backend["metadata"]["generation"] = 1
    backend["status"]["conditions"] = conditions
    assert health(backend) == want


def test_one_text_serves_both_kinds() -> None:
    assert set(checks()) == {"DispatchStart", "DispatchBackend"}
    assert len(set(checks().values())) == 1
