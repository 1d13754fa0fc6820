"""`python sdk_train.py KUBECONFIG NAMESPACE RUNTIME COUNT`: prints the seconds that so many calls of train() take.

It runs in an environment of its own, with the Kubeflow SDK (requirements/bench.txt) and without the operator.
"""

import sys
import time

from kubeflow.trainer import CustomTrainerContainer, KubernetesBackendConfig, TrainerClient


def main(kubeconfig: str, namespace: str, runtime: str, count: str) -> None:
    """Start the jobs one after the other, as a person's loop does."""
    client = TrainerClient(KubernetesBackendConfig(config_file=kubeconfig, namespace=namespace))
    trainer = CustomTrainerContainer(image="registry.example/llama:1", num_nodes=2, env={"SEED": "7"})
    begun = time.monotonic()
    for _ in range(int(count)):
        client.train(runtime=runtime, trainer=trainer)
    print(time.monotonic() - begun)


if __name__ == "__main__":
    main(*sys.argv[1:])
