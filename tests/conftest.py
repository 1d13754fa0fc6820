"""Fixtures of all tests: the embedded control planes, one of each kind per session, started when first asked for."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from controlplane import Cluster, running
from controlplane.build import CONTROLLERS, HELM, KSTATUS, KUBERNETES, build
from support.kstatus import Kstatus
from support.patient_loop import new_patient_loop
from support.summary import Summary

# Before Python 3.14, asking for the current event loop makes one where none was ever set. Pytest-asyncio asks, and
# leaves that loop unclosed (https://github.com/pytest-dev/pytest-asyncio/issues/724); with None set, none is made.
asyncio.set_event_loop(None)

# A shell that runs the tests in the background has them ignore Ctrl-C, and with them what they start and send it to.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asserts how fast the machine is, which may do other things at the same time.
hypothesis.settings.register_profile(
    "here",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.load_profile("here")

CRDS = Path(__file__).parents[1] / "crds"
TALLY = pytest.StashKey[Summary]()
CLUSTERS = ("cluster", "kueue_cluster")


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Give every test that is a coroutine the loop that waits for sockets before it moves virtual time."""
    return {"patient": new_patient_loop}


@pytest.fixture(scope="session")
def summary(request: pytest.FixtureRequest) -> Summary:
    """The figures of this session."""
    return request.config.stash.setdefault(TALLY, Summary())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the figures at the end."""
    if summary := config.stash.get(TALLY, None):
        terminalreporter.write_line(str(summary))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster with Trainer, JobSet and this project's CRDs."""
    with running(extra_manifests=sorted(CRDS.glob("*.yaml"))) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kueue_cluster() -> Iterator[Cluster]:
    """A cluster with Kueue too."""
    with running(kueue=True, extra_manifests=sorted(CRDS.glob("*.yaml"))) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kstatus() -> Kstatus:
    """What kstatus itself makes of objects."""
    return Kstatus(build(KSTATUS))


@pytest.fixture(autouse=True)
def _programs_still_run(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that used a cluster fails when a program of it died, and says which."""
    clusters = [request.getfixturevalue(name) for name in CLUSTERS if name in request.fixturenames]
    yield
    for used in clusters:
        used.check()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses a cluster."""
    for item in items:
        if _uses_cluster(item):
            item.add_marker(pytest.mark.cluster)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build now what a cluster needs: the first build takes longer than a test may."""
    # The marker counts, not the fixture: a test may also start a cluster of its own.
    if not session.config.option.collectonly and any(item.get_closest_marker("cluster") for item in session.items):
        build(KUBERNETES)
        build(CONTROLLERS)
        build(HELM)
    if not session.config.option.collectonly and any(
        "kstatus" in getattr(item, "fixturenames", ()) for item in session.items
    ):
        build(KSTATUS)


def _uses_cluster(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and not set(CLUSTERS).isdisjoint(item.fixturenames)
