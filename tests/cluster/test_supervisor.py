"""The supervisor of deploy/samples on the real control plane."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from kubernetes_asyncio import client, config

from support.builders import JOB, make_start

from .conftest import Object, Team

FILE = Path(__file__).parents[2] / "deploy" / "samples" / "supervisor.py"
EVERY = 0.2
"""Seconds between two looks."""
pytestmark = pytest.mark.usefixtures("operator")


@pytest.fixture(scope="module")
def supervisor() -> ModuleType:
    spec = importlib.util.spec_from_file_location("supervisor", FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def supervise(supervisor: ModuleType, team: Team, spec: Object) -> Object:
    await config.load_kube_config(str(team.cluster.kubeconfig))
    async with client.ApiClient() as connection:
        api = client.CustomObjectsApi(connection)
        status: Object = await supervisor.supervise(api, team.namespace, JOB, spec, EVERY)
    return status


def job_spec() -> Object:
    spec: Object = make_start()["spec"]["request"]["spec"]
    return spec


async def test_a_job_is_supervised_to_its_end(supervisor: ModuleType, team: Team) -> None:
    status = await supervise(supervisor, team, job_spec())
    assert status["outcome"]["state"] == "Succeeded"
    # Once more finds what was submitted before.
    assert (await supervise(supervisor, team, job_spec()))["reference"] == status["reference"]


async def test_a_request_that_can_never_be_right_is_not_submitted_again(supervisor: ModuleType, team: Team) -> None:
    status = await supervise(supervisor, team, {**job_spec(), "nodes": 0})
    assert (status["outcome"]["state"], status["outcome"]["cause"]) == ("Refused", "ErrInvalid")
    assert [one["metadata"]["name"] for one in team.all("dispatchstarts")] == [f"{JOB.lower()}-s1-a0"]
