"""A control plane's life: brought up, watched, and taken down."""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from controlplane import ports
from controlplane.build import CONTROLLERS, KUBERNETES, Built, build
from controlplane.cluster import Cluster
from controlplane.processes import Processes
from controlplane.site import Ports, Site
from controlplane.startup import Startup
from controlplane.variation import Variation, leave_alone
from controlplane.waiting import StoppedError, Waiter

WATCH_SECONDS = 0.25


@contextmanager
def running(  # noqa: PLR0913  # All are keywords, and most calls have none of the last four.
    *,
    kueue: bool = False,
    extra_manifests: Sequence[Path] = (),
    kueue_feature_gates: Mapping[str, bool] | None = None,
    kueue_config: Mapping[str, Any] | None = None,
    garbage_collection: bool = True,
    alter_crds: Callable[[dict[str, Any]], None] = leave_alone,
) -> Iterator[Cluster]:
    """A control plane for the length of a `with` block; see `ControlPlane`, and `Variation` for the last four."""
    variation = Variation(kueue_feature_gates or {}, kueue_config or {}, garbage_collection, alter_crds)
    with ControlPlane(kueue=kueue, extra_manifests=extra_manifests, variation=variation) as cluster:
        yield cluster


class ControlPlane:
    """A Kubernetes control plane with Trainer, JobSet and two simulated nodes, and with Kueue on request.

    It is a context manager, for `with` and for `async with`, that gives a `Cluster`. All of it belongs to one thread,
    which starts the programs, watches them, and stops them: when told to, when one dies, or when the main thread ends.

    Args:
        kueue: Whether Kueue is part of it.
        extra_manifests: Files of CRDs and other objects that are to exist before garbage collection starts.
        variation: How it differs from the usual one.
    """

    def __init__(
        self,
        *,
        kueue: bool = False,
        extra_manifests: Sequence[Path] = (),
        variation: Variation | None = None,
    ) -> None:
        self._controllers = ("trainer", "jobset", "kueue") if kueue else ("trainer", "jobset")
        self._extra_manifests = tuple(extra_manifests)
        self._variation = variation or Variation()
        self._stopping = threading.Event()
        self._settled = threading.Event()
        self._ended = threading.Event()
        self._cluster: Cluster | None = None
        self._failure: BaseException | None = None
        self._started = False

    def start(self) -> Cluster:
        """Build the programs where needed, start them, and return when the cluster is ready.

        Raises:
            CommandFailedError: A program could not be built.
            ProcessDiedError: A program ended; this and any other failure has a note that says where the logs are.
            NotInTimeError: Something took too long.
            KubectlError: An object was refused.
            StoppedError: `stop` was called meanwhile.
        """
        kubernetes, controllers = build(KUBERNETES), build(CONTROLLERS)
        folder = Path(tempfile.mkdtemp(prefix="dispatch-operator-"))
        thread = threading.Thread(target=self._live, args=(folder, kubernetes, controllers), name="controlplane")
        try:
            thread.start()
            self._started = True
            self._settled.wait()
        except BaseException:
            self.stop()
            raise
        if self._cluster is None:
            raise self._failure or StoppedError("stopped before it was up")
        return self._cluster

    def stop(self) -> None:
        """Stop everything, and return when it has ended."""
        self._stopping.set()
        if self._started:
            self._ended.wait()

    def wait(self) -> None:
        """Wait for the end, which comes by itself only with a failure.

        Raises:
            ProcessDiedError: A program ended.
        """
        # Not by joining the thread: one whose join was interrupted counts as ended (python/cpython#90882).
        self._ended.wait()
        self._check()

    def __enter__(self) -> Cluster:
        """Start it."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()

    async def __aenter__(self) -> Cluster:
        """Start it, while the event loop goes on."""
        try:
            return await asyncio.to_thread(self.start)
        except asyncio.CancelledError:
            self._stopping.set()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop it, while the event loop goes on."""
        await asyncio.to_thread(self.stop)

    def _live(self, folder: Path, kubernetes: Built, controllers: Built) -> None:
        """The thread's work, which leaves nothing behind but the logs of a failure."""
        try:
            with suppress(StoppedError), ports.reserved(Ports.COUNT) as numbers:
                self._run(Site.prepare(folder, Ports(*numbers), kubernetes, controllers, self._variation))
            shutil.rmtree(folder)
        except BaseException as error:  # noqa: BLE001  # Whatever it is, who waits for this thread must learn of it.
            error.add_note(f"The logs are in {folder / 'logs'}")
            self._failure = error
            shutil.rmtree(folder / "etcd", ignore_errors=True)
        finally:
            self._settled.set()
            self._ended.set()

    def _run(self, site: Site) -> None:
        processes = Processes(site.logs)
        try:
            waiter = Waiter(self._stopping, processes.check)
            Startup(site, processes, waiter, self._controllers, self._extra_manifests).run()
            self._cluster = Cluster(site, processes.pids, self._check)
            self._settled.set()
            while not self._stopping.wait(WATCH_SECONDS) and threading.main_thread().is_alive():
                processes.check()
        finally:
            if self._cluster is not None:
                self._cluster.close()
            # The data may go only when etcd has ended: an etcd started in the same folder later would not survive it.
            processes.stop()

    def _check(self) -> None:
        if self._failure:
            raise self._failure
