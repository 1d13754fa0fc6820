"""The steps of a Start in their order (docs/contract.md, Steps of a Start).

1 admit, 2 to 4 check the request, 5 copy the runtime, 6 create the TrainJob, 7 set the owner, 8 read back, 9 await the
Workload.

A step is a pure function of what has been observed. It returns an action to carry out, a verdict that is
recorded in the status, or None when it has nothing left to do and the next step is due.
"""

from collections.abc import Callable

from dispatch_operator.reconcile.actions import Action
from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.reconcile.step_result import Verdict
from dispatch_operator.reconcile.steps.admit import admit
from dispatch_operator.reconcile.steps.await_workload import await_workload
from dispatch_operator.reconcile.steps.check_request import check_request
from dispatch_operator.reconcile.steps.copy_runtime import copy_runtime
from dispatch_operator.reconcile.steps.create_train_job import create_train_job, find_train_job, resolve_in_flight
from dispatch_operator.reconcile.steps.read_back import read_back
from dispatch_operator.reconcile.steps.set_owner import set_owner

Step = Callable[[Observed, float], Action | Verdict | None]

FROM_THE_BEGINNING: tuple[Step, ...] = (resolve_in_flight, admit, check_request, copy_runtime, create_train_job)
"""A Start whose TrainJob does not exist yet, or is not known to: what became of an unanswered create comes first."""

WITH_TRAIN_JOB: tuple[Step, ...] = (find_train_job, set_owner, read_back, await_workload)
"""A Start whose TrainJob was created or found: it has passed steps 1 to 6, whatever has changed since."""

WITH_UNMARKED_TRAIN_JOB: tuple[Step, ...] = (read_back, *WITH_TRAIN_JOB)
"""A Start whose TrainJob lost all marks of ours when it was created: it is told apart by its UID alone, which nobody
knows but this reconcile. What was changed is seen, and recorded with the UID, before anything else is done."""
