"""The TrainJobs that this operator has just created, until a watch tells of them: a burst need not read them again."""

from dataclasses import dataclass, field

from dispatch_operator.kube.index import Key
from dispatch_operator.records.trainer import TrainJob

SOON = 5.0
"""Seconds within which a watch tells of an object that was created."""


@dataclass
class JustCreated:
    """What creates have returned, by the key of the DispatchStart. It is as good as a cache, and carries no verdict."""

    _jobs: dict[Key, tuple[TrainJob, float]] = field(default_factory=dict)

    def note(self, key: Key, job: TrainJob, now: float) -> None:
        """Keep a TrainJob that was created at a time, in seconds since the epoch."""
        self._jobs[key] = (job, now)

    def forget(self, key: Key) -> None:
        """Forget a TrainJob that a watch has told of, or that is being deleted."""
        self._jobs.pop(key, None)

    def get(self, key: Key, now: float) -> TrainJob | None:
        """Return a TrainJob that no watch need have told of yet; None when there is none, or it is too long ago."""
        job, since = self._jobs.get(key, (None, now))
        if abs(now - since) < SOON:
            return job
        self.forget(key)
        return None
