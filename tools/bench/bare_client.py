"""`python -m bench.bare_client`: starts jobs with the six requests of a Start, and checks nothing.

It is what anybody would write with kubernetes_asyncio: no rendering, no status to think about, no watch. Its time is
the floor of what a Start can cost in Python, on this control plane.
"""

import argparse
import asyncio
import resource
import time
from typing import Any

from kubernetes_asyncio import client, config
from msgspec import json

from bench.bodies import Bodies

Object = dict[str, Any]
DISPATCH = ("dispatch.phpboyscout.uk", "v1alpha1")
TRAINER = ("trainer.kubeflow.org", "v1alpha1")
PAUSE_SECONDS = 0.05
"""Before the TrainJob is created again: a webhook's cache has not seen the copy."""
FORBIDDEN = 403
MERGE = "application/merge-patch+json"


class BareClient:
    """Makes the requests."""

    def __init__(self, api: client.CustomObjectsApi, bodies: Bodies) -> None:
        # The library's types lack an argument that its code takes.
        self._api: Any = api
        self._bodies = bodies

    async def start(self, start: Object) -> None:
        """Read the runtime, create the copy and the job, own the copy, read the job back, and write the status."""
        api, (name, namespace) = self._api, (start["metadata"]["name"], start["metadata"]["namespace"])
        runtime = await api.get_cluster_custom_object(*TRAINER, "clustertrainingruntimes", "torch-dispatch")
        body = self._bodies.copy(start, runtime)
        copy = await api.create_namespaced_custom_object(*TRAINER, namespace, "trainingruntimes", body)
        job = await self._create_job(namespace, self._bodies.train_job(start))
        owner = self._bodies.owner(job)
        target = job["metadata"]["name"]
        await api.patch_namespaced_custom_object(
            *TRAINER, namespace, "trainingruntimes", target, owner, _content_type=MERGE
        )
        await api.get_namespaced_custom_object(*TRAINER, namespace, "trainjobs", target)
        status = self._bodies.status(start, copy, job)
        await api.patch_namespaced_custom_object_status(
            *DISPATCH, namespace, "dispatchstarts", name, status, _content_type=MERGE
        )

    async def _create_job(self, namespace: str, body: Object) -> Object:
        while True:
            try:
                job: Object = await self._api.create_namespaced_custom_object(*TRAINER, namespace, "trainjobs", body)
            except client.ApiException as error:
                if error.status != FORBIDDEN:
                    raise
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return job


async def _run(arguments: argparse.Namespace) -> Object:
    await config.load_kube_config(arguments.kubeconfig)
    async with client.ApiClient() as api:
        api.user_agent = "bare-client/1"
        objects = client.CustomObjectsApi(api)
        listed = await objects.list_namespaced_custom_object(*DISPATCH, arguments.namespace, "dispatchstarts")
        starts = [start for start in listed["items"] if not start.get("status", {}).get("phase")]
        bare = BareClient(objects, Bodies())
        slots = asyncio.Semaphore(arguments.at_once)
        seconds: list[float] = []

        async def start_one(start: Object) -> None:
            async with slots:
                begun = time.monotonic()
                await bare.start(start)
                seconds.append(time.monotonic() - begun)

        begun, cpu = time.monotonic(), _cpu()
        await asyncio.gather(*map(start_one, starts))
        spent = time.monotonic() - begun
        return {"starts": len(starts), "seconds": spent, "cpu": _cpu() - cpu, "latencies": sorted(seconds)}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig")
    parser.add_argument("namespace")
    parser.add_argument("--at-once", type=int, default=20)
    print(json.encode(asyncio.run(_run(parser.parse_args()))).decode(), flush=True)
