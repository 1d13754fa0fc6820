"""`python -P sdk_witness.py KUBECONFIG NAMESPACE COMMAND [ARGUMENT…]`: prints what the Kubeflow SDK says, as JSON.

It runs in an environment of its own, with the SDK (requirements/bench.txt) and without the operator. Commands are `list`,
`get NAME`, `wait NAME STATUS SECONDS` and `train RUNTIME`. What the SDK raises is printed as `{"raised": "… because …"}`.
"""

import json
import sys
from collections.abc import Iterator

from kubeflow.trainer import CustomTrainerContainer, KubernetesBackendConfig, TrainerClient
from kubeflow.trainer.types.types import TrainJob


def shown(job: TrainJob) -> dict[str, object]:
    """Return what is compared of a job."""
    steps = sorted((step.name, step.status) for step in job.steps)
    return {
        "name": job.name,
        "status": job.status,
        "nodes": job.num_nodes,
        "runtime": job.runtime.name,
        "framework": job.runtime.trainer.framework,
        "steps": steps,
    }


def answer(client: TrainerClient, *command: str) -> object:
    """Return what the SDK says.

    Raises:
        ValueError: There is no such command.
    """
    match command:
        case ["list"]:
            return [shown(job) for job in client.list_jobs()]
        case ["get", name]:
            return shown(client.get_job(name))
        case ["wait", name, status, seconds]:
            return shown(client.wait_for_job_status(name, {status}, timeout=int(seconds), polling_interval=1))
        case ["train", runtime]:
            trainer = CustomTrainerContainer(image="registry.example/llama:1", num_nodes=1)
            return client.train(runtime=runtime, trainer=trainer)
    raise ValueError(f"no such command: {command}")


def causes(error: BaseException | None) -> Iterator[str]:
    """Yield the words of an error, and of each that it was raised for."""
    while error is not None:
        yield str(error)
        error = error.__cause__ or error.__context__


def main(kubeconfig: str, namespace: str, *command: str) -> None:
    """Print the answer to one command."""
    client = TrainerClient(KubernetesBackendConfig(config_file=kubeconfig, namespace=namespace))
    try:
        said = answer(client, *command)
    except Exception as error:  # noqa: BLE001 - whatever it raises is what it says.
        said = {"raised": " because ".join(causes(error))}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
