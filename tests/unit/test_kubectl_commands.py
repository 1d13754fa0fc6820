"""`kubectl dispatch`: its options, the gate, the check of a backend, and what all commands share."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from dispatch_operator.checks.runtime import RULES
from dispatch_operator.cli.main import COMMANDS as OF_THE_OPERATOR
from dispatch_operator.cli.main import main as operator_main
from dispatch_operator.plugin import session
from dispatch_operator.plugin.advice import split
from dispatch_operator.plugin.main import COMMANDS, main
from dispatch_operator.plugin.session import Kubectl, Target
from dispatch_operator.reconcile.backend.status import NOT_PROBED
from support.builders import NAME, make_backend, make_condition, make_runtime, make_start
from support.fake_api import always, refusal
from support.plugin import World, world_of
from support.records import at

Object = dict[str, Any]
LEFT_OUT = """
import sys
from dispatch_operator.plugin.main import main
for command in ([], *([name] for name in sys.argv[2:])):
    main([*command, "--help"], standalone_mode=False)
print(*sorted(set(sys.argv[1].split(",")) & sys.modules.keys()))
"""


def world(*objects: Object) -> World:
    made = World()
    made.put(*objects)
    return made


# All commands.


def test_the_help_has_the_first_sentence_of_every_command() -> None:
    told = {name: main.get_command(click.Context(main), name) for name in COMMANDS}
    assert {name: command and command.get_short_help_str(1000) for name, command in told.items()} == {
        name: command.sentence for name, command in COMMANDS.items()
    }


def test_help_needs_neither_the_client_nor_rich_nor_what_decides() -> None:
    own = [name for name in COMMANDS if name not in OF_THE_OPERATOR]
    arguments = [LEFT_OUT, "kopf,kubernetes_asyncio,aiohttp,rich,pydantic,yaml", *own]
    done = subprocess.run([sys.executable, "-c", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.count("Usage: ") == len(own) + 1
    assert done.stdout.splitlines()[-1] == ""


def test_the_commands_about_runtimes_are_those_of_the_operator() -> None:
    for name in COMMANDS.keys() & OF_THE_OPERATOR.keys():
        assert main.get_command(click.Context(main), name) is operator_main.get_command(
            click.Context(operator_main), name
        )
    shown = CliRunner().invoke(main, ["check-runtime", "--help"], prog_name="kubectl dispatch").stdout
    assert "kubectl dispatch check-runtime -f runtime.yaml" in shown
    assert "dispatch-operator" not in shown


def test_what_is_said_before_the_command_stands_for_it_unless_it_says_otherwise() -> None:
    start = make_start()
    start["metadata"]["namespace"] = "team-b"
    asked = world(start)
    for arguments in (["-n", "team-b", "status", "llama-s1"], ["-n", "x", "status", "llama-s1", "-n", "team-b"]):
        assert asked.ask(*arguments).stdout.startswith("DispatchStart/llama-s1 Unseen")
    assert asked.ask("status", "llama-s1").exit_code == 2


def test_options_that_can_not_be_meant_are_refused() -> None:
    asked = world(make_start())
    for arguments, says in (
        (["status", "llama-s1", "-n", "Bad Name"], '"Bad Name" is not the name of a namespace'),
        (["status", "../secrets"], '"../secrets" is not the name of a DispatchStart'),
        (["check-backend", "A"], '"A" is not the name of a DispatchBackend'),
        (["wait", "llama-s1", "--timeout", "soon"], '"soon" is no duration: write 90s or 1h30m'),
        (["watch", "-A", "-n", "team-a"], "can't be combined"),
        (["status", "llama-s1", "--kubeconfig", "/nowhere"], "'/nowhere' does not exist"),
        (["begin"], "No such command 'begin'"),
    ):
        result = asked.ask(*arguments)
        assert (result.exit_code, result.stdout) == (2, ""), arguments
        assert says in result.stderr


def test_commands_for_people_name_the_cluster_that_was_asked() -> None:
    kubectl = Kubectl("team-a", Target(kubeconfig="/a b", context="prod"))
    assert kubectl("get", "pods") == "kubectl get pods -n team-a --context prod --kubeconfig '/a b'"
    assert kubectl("get", "nodes", namespaced=False) == "kubectl get nodes --context prod --kubeconfig '/a b'"


def test_a_cluster_that_can_not_be_asked_is_told(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{}")
    result = CliRunner().invoke(main, ["status", "x", "--kubeconfig", str(kubeconfig)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "name a kubeconfig with --kubeconfig or KUBECONFIG" in result.stderr


def test_ctrl_c_ends_a_command_with_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(work: Any) -> None:
        work.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(session.asyncio, "run", interrupted)
    assert CliRunner().invoke(main, ["status", "x"]).exit_code == 130


def test_a_message_is_split_into_its_problems_and_not_within_them() -> None:
    message = (
        "nodes: must be 1 to 100,000, not 0; use 1; slurm/P: extension slurm/P is not supported; no-ttl: x; state: y"
    )
    assert split(message) == [
        "nodes: must be 1 to 100,000, not 0; use 1",
        "slurm/P: extension slurm/P is not supported",
        "no-ttl: x",
        "state: y",
    ]
    assert split("") == []


# The gate.


def gate_of(asked: World) -> str:
    return str(asked.api.one("DispatchStart")["spec"]["gate"])


async def started(made: World) -> None:
    await made.started()


@pytest.mark.parametrize(
    ("arguments", "gate", "says"),
    [
        (["open"], "Open", "the gate was Closed, and is Open now: the job may run"),
        (["hold"], "Held", "the gate was Closed, and is Held now: it has not been open, so that it stays as it is"),
        (
            ["cancel", "--yes"],
            "Cancelled",
            "the gate was Closed, and is Cancelled now: the job is being stopped, for good",
        ),
    ],
)
def test_a_gate_is_moved(arguments: list[str], gate: str, says: str) -> None:
    asked = world_of(started)
    asked.api.requests.clear()
    result = asked.ask(arguments[0], "llama-s1", *arguments[1:])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"dispatchstart/llama-s1: {says}")
    assert gate_of(asked) == gate
    (patch,) = [request for request in asked.api.requests if request.verb == "patch"]
    assert at(patch.body, "metadata", "uid") == asked.api.one("DispatchStart")["metadata"]["uid"]


@pytest.mark.parametrize("gate", ["Closed", "Open"])
@pytest.mark.parametrize("problem", ["was changed", "is gone"])
def test_a_gate_that_stays_closed_is_not_said_to_open(gate: str, problem: str) -> None:
    async def altered(made: World) -> None:
        await made.started()
        if problem == "is gone":
            made.api.remove("TrainingRuntime", "team-a", NAME)
        else:
            made.api.edit("TrainingRuntime", lambda copy: copy["spec"].update(mlPolicy={"numNodes": 2}))
        made.api.edit("DispatchStart", lambda start: start["spec"].update(gate=gate))
        await made.operator.settle()

    asked = world_of(altered)
    result = asked.ask("open", "llama-s1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "in its spec, but it stays closed: the copy, TrainingRuntime" in result.stderr
    assert problem in result.stderr
    assert result.stderr.endswith("; kubectl dispatch explain llama-s1 -n team-a says what to do\n")
    assert gate_of(asked) == "Open"


@pytest.mark.parametrize(
    ("phase", "says"),
    [
        ("Pending", "no job of it was made, and none will be"),
        ("InFlight", "what was begun of it is taken away"),
    ],
)
def test_of_a_start_without_a_job_no_job_is_said_to_be_stopped(phase: str, says: str) -> None:
    told = world({**make_start(), "status": {"phase": phase}}).ask("cancel", "llama-s1", "--yes").stdout
    assert told == f"dispatchstart/llama-s1: the gate was Closed, and is Cancelled now: {says}\n"


def test_a_gate_that_is_there_already_is_left_alone() -> None:
    asked = world(make_start(gate="Open"))
    result = asked.ask("open", "llama-s1")
    assert (result.exit_code, result.stdout) == (0, "dispatchstart/llama-s1: the gate is Open already\n")
    assert asked.api.writes() == []


def test_a_start_that_has_not_started_is_opened_when_it_has() -> None:
    asked = world(make_start())
    assert "as soon as it is started" in asked.ask("open", "llama-s1").stdout


@pytest.mark.parametrize("command", [["open"], ["hold"], ["cancel", "--yes"]])
def test_the_gate_of_what_has_ended_is_left_alone(command: list[str]) -> None:
    asked = world({**make_start(), "status": {"phase": "Failed"}})
    result = asked.ask(command[0], "llama-s1", *command[1:])
    want = "Error: dispatchstart/llama-s1 has ended (Failed): its gate changes nothing any more\n"
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", want)
    assert asked.api.writes() == []


def test_a_change_that_the_api_server_refuses_is_told_as_a_refusal() -> None:
    asked = world(make_start(gate="Open"))
    said = "spec.gate: Invalid value: a cancelled Start stays cancelled"
    asked.api.before = always("patch", "DispatchStart", refusal("patch", "DispatchStart", 422, "Invalid", said))
    result = asked.ask("hold", "llama-s1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr


def test_who_may_not_move_a_gate_is_told_so() -> None:
    asked = world(make_start())
    said = 'User "eve" cannot patch resource "dispatchstarts" in API group "dispatch.phpboyscout.uk"'
    denied = refusal("patch", "DispatchStart team-a/llama-s1", 403, "Forbidden", said)
    asked.api.before = always("patch", "DispatchStart", denied)
    result = asked.ask("open", "llama-s1")
    assert result.exit_code == 2
    assert "you may not patch DispatchStart team-a/llama-s1" in result.stderr


def test_nothing_is_cancelled_without_being_asked() -> None:
    asked = world(make_start())
    result = asked.ask("cancel", "llama-s1")
    assert (result.exit_code, "say --yes" in result.stderr) == (2, True)
    assert asked.api.writes() == []


# The backend.


def report(asked: World, *arguments: str) -> tuple[int, list[str]]:
    result = asked.ask("check-backend", *arguments)
    return result.exit_code, result.stdout.splitlines()


def proven(**spec: Any) -> Object:
    backend = make_backend(**spec)
    backend["status"]["conditions"] = [make_condition("Ready", "True", "Proven", "every gate is proven")]
    return backend


def test_a_backend_with_which_nothing_is_wrong() -> None:
    code, lines = report(world(proven(maxNodes=4, timeLimitRequired=True), make_runtime()))
    assert code == 0
    assert lines == [
        "DispatchBackend/default takes Starts",
        "  ok: state: Open: it takes Starts, once its gates are proven",
        *(
            f"  ok: {gate}: proven, last probed 2025-12-31T23:00:00Z"
            for gate in ("fields-kept", "start-gate", "collected")
        ),
        "  note: maxNodes: 4",
        "  note: timeLimitRequired: a request must state a timeLimit",
        "  ok: ClusterTrainingRuntime/torch-dispatch: it is fit for Starts",
        "  note: kueue: none: jobs are gated plainly, and run as soon as their gate is open",
    ]


def test_every_problem_of_a_backend_is_told_with_what_to_do() -> None:
    runtime = make_runtime()
    runtime["spec"]["template"]["spec"]["suspend"] = False
    backend = proven(
        state="Closed",
        runtimes=[{"kind": "ClusterTrainingRuntime", "name": "gone"}],
        kueue={"queue": "team-a", "admissionCheck": "dispatch-start"},
    )
    backend["status"]["gates"][1] |= {"proven": False, "reason": "a pod of the probe ran"}
    backend["status"]["conditions"] = [make_condition("Ready", "False", "ObserveOnly", "x")]
    code, lines = report(world(backend, runtime))
    assert code == 1
    assert lines[0] == "DispatchBackend/default takes no Starts"
    problems = [line.strip() for line in lines if line.startswith("  problem: ")]
    assert problems == [
        "problem: state: Closed: its admin lets it take no Starts",
        "problem: start-gate: not proven, last probed 2025-12-31T23:00:00Z: a pod of the probe ran",
        "problem: ClusterTrainingRuntime/gone: it does not exist",
        "problem: ClusterTrainingRuntime/torch-dispatch: not-suspended: spec.template.spec.suspend must not be stated, and is false",
        "problem: kueue: LocalQueue team-a does not exist",
        "problem: kueue: AdmissionCheck dispatch-start does not exist",
    ]
    shown = "\n".join(lines)
    assert """kubectl patch dispatchbackend default --type=merge '-p={"spec":{"state":"Open"}}' -n team-a""" in shown
    assert f"Remedy: {next(rule.remedy for rule in RULES if rule.id == 'not-suspended')}" in shown
    assert all(lines[lines.index(f"  {one}") + 1].startswith("    ") for one in problems)


def test_a_gate_that_was_not_probed_is_no_problem_of_its_own() -> None:
    backend = proven()
    backend["status"]["gates"][0] |= {"proven": False, "reason": "the cluster drops a field"}
    for gate in backend["status"]["gates"][1:]:
        gate |= {"proven": False, "reason": NOT_PROBED}
    backend["status"]["conditions"] = [make_condition("Ready", "False", "ObserveOnly", "x")]
    code, lines = report(world(backend, make_runtime()))
    assert code == 1
    first = lines.index(f"  skipped: start-gate: {NOT_PROBED}")
    assert lines[first + 1] == f"  skipped: collected: {NOT_PROBED}"
    assert lines[first + 2].startswith("  note: ")


def test_programs_are_told_the_same_of_a_backend() -> None:
    asked = world(proven(), make_runtime())
    told = json.loads(asked.ask("check-backend", "-o", "json").stdout)
    assert told.keys() == {"name", "namespace", "takesStarts", "findings"}
    assert told["takesStarts"] is True
    assert {one["state"] for one in told["findings"]} == {"ok", "note"}
    assert all(one.keys() == {"state", "what", "text", "next"} for one in told["findings"])


def test_what_may_not_be_read_of_a_backend_is_told_and_is_no_problem() -> None:
    kueue = {"queue": "team-a", "admissionCheck": "dispatch-start"}
    asked = world(proven(kueue=kueue))

    def forbid(request: Any) -> Any:
        if request.kind == "DispatchBackend":
            return None
        plural = f"{request.kind.lower()}s"
        said = f'User "eve" cannot get resource "{plural}" in API group "x"'
        return refusal("get", f"{request.kind} {request.name}", 403, "Forbidden", said)

    asked.api.before = forbid
    code, lines = report(asked)
    assert code == 0
    unknown = [line.strip() for line in lines if line.startswith("  unknown: ")]
    assert (
        unknown[0]
        == "unknown: ClusterTrainingRuntime/torch-dispatch: you may not get ClusterTrainingRuntime torch-dispatch"
    )
    assert unknown[1].startswith("unknown: kueue: you may not get localqueues")


def test_a_backend_that_nobody_has_probed_takes_no_starts() -> None:
    backend = make_backend()
    backend["status"] = {"observedGeneration": -1}
    code, lines = report(world(backend, make_runtime()))
    assert code == 1
    assert "  problem: gates: no operator has probed it yet" in lines


def test_a_backend_that_is_not_there_is_told() -> None:
    result = world().ask("check-backend")
    assert result.exit_code == 2
    assert 'there is no DispatchBackend "default" in the namespace team-a' in result.stderr
