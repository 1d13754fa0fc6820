"""A supervisor in small: submit a job, wait for its end, and go on by what the status says. See docs/supervisors.md.

    python supervisor.py team-a 01J9ZQ4V8Y3N5T7R2C6W1X0ABK job.json

job.json is the JobSpec: command, nodes, extensions and so on.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from kubernetes_asyncio import client, config

Object = dict[str, Any]
GROUP, VERSION, PLURAL = "dispatch.phpboyscout.uk", "v1alpha1", "dispatchstarts"
SUBMISSIONS = 3


def dispatch_start(job: str, submission: int, spec: Object, *, attempt: int = 0, gate: str = "Open") -> Object:
    """Return the object whose name says what it asks for, so that submitting it twice is submitting it once."""
    request = {"job": job, "submission": submission, "attempt": attempt, "spec": spec}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "DispatchStart",
        "metadata": {"name": f"{job.lower()}-s{submission}-a{attempt}"},
        "spec": {"gate": gate, "request": request},
    }


async def submit(api: client.CustomObjectsApi, namespace: str, start: Object) -> str:
    """Create the object unless it is there already, and return its name."""
    try:
        await api.create_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, start)
    except client.ApiException as error:
        # After a lost answer, too, the create is just made again.
        if json.loads(error.body or "{}").get("reason") != "AlreadyExists":
            raise
    return str(start["metadata"]["name"])


async def end_of(api: client.CustomObjectsApi, namespace: str, name: str, every: float = 5.0) -> Object:
    """Wait until nothing more will happen, and return the status."""
    while True:
        start = await api.get_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, name)
        status: Object = start.get("status", {})
        finished = (one["status"] for one in status.get("conditions", []) if one["type"] == "Finished")
        if next(finished, "False") == "True":
            return status
        await asyncio.sleep(every)


def goes_on(status: Object, submission: int, attempt: int) -> tuple[int, int] | None:
    """Return the submission and the attempt to go on with; None when another try ends as this one."""
    outcome = status["outcome"]
    match outcome["state"], outcome.get("cause"), outcome.get("errorKind"):
        case "Refused", "ErrUnreachable" | "ErrReadOnly", _:
            return submission, attempt + 1  # Nothing of it ran, and nothing is left: the same submission, tried again.
        case "Failed", _, "System":
            return submission + 1, 0  # It ran, and the cluster took it down: another submission, another epoch.
        case _:
            return None


async def supervise(api: client.CustomObjectsApi, namespace: str, job: str, spec: Object, every: float = 5.0) -> Object:
    """Submit a job until it succeeds or can't, and return the last status."""
    submission, attempt = 1, 0
    while True:
        name = await submit(api, namespace, dispatch_start(job, submission, spec, attempt=attempt))
        status = await end_of(api, namespace, name, every)
        following = goes_on(status, submission, attempt)
        if following is None or max(following) > SUBMISSIONS:
            return status
        submission, attempt = following


async def main(namespace: str, job: str, spec: Object) -> int:
    """Supervise one job, print its end, and return 0 when it succeeded."""
    await config.load_config()
    async with client.ApiClient() as connection:
        status = await supervise(client.CustomObjectsApi(connection), namespace, job, spec)
    print(json.dumps(status["outcome"], indent=2))
    return 0 if status["outcome"]["state"] == "Succeeded" else 1


if __name__ == "__main__":
    in_namespace, of_job, in_file = sys.argv[1:]
    sys.exit(asyncio.run(main(in_namespace, of_job, json.loads(Path(in_file).read_text()))))
