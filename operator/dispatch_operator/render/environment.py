"""The job's variables: the request's, then dispatch's own (docs/contract.md, Environment of the job)."""

from typing import Any

from dispatch_operator.api.group import LABEL_RESTART_ATTEMPT
from dispatch_operator.api.models import StartRequest
from dispatch_operator.render.escaping import escape_dollars

_SUBMISSIONS_OF_A_GENERATION = 10**6
_RESTARTS_OF_A_SUBMISSION = 10**6


def environment(request: StartRequest) -> list[dict[str, Any]]:
    """Return the entries of ``spec.trainer.env``; an empty value is left out, as Kueue's later update drops it."""
    values = [_value(name, escape_dollars(value)) for name, value in sorted(request.spec.env.items())]
    own = [
        _value("DISPATCH_JOB_ID", request.job),
        _value("DISPATCH_SUBMISSION", str(request.submission)),
        _value("DISPATCH_ATTEMPT", str(request.attempt)),
        _value("DISPATCH_K8S_EPOCH_PREFIX", str(epoch_prefix(request))),
        _field("DISPATCH_K8S_RESTART", f"metadata.labels['{LABEL_RESTART_ATTEMPT}']"),
        _field("DISPATCH_K8S_POD_UID", "metadata.uid"),
    ]
    work_dir = request.spec.work_dir
    return values + own + ([_value("DISPATCH_K8S_WORKDIR", escape_dollars(work_dir))] if work_dir else [])


def epoch_prefix(request: StartRequest) -> int:
    """Return G * 10^6 + N, which the prologue completes with the restart to the epoch."""
    return request.generation * _SUBMISSIONS_OF_A_GENERATION + request.submission


def first_epoch(request: StartRequest) -> str:
    """Return the epoch of a submission before any restart, as text: it may not fit a signed 64-bit integer."""
    return str(epoch_prefix(request) * _RESTARTS_OF_A_SUBMISSION)


def _value(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "value": value} if value else {"name": name}


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
