"""What must come of a fault: docs/contract.md, API answers, as one function of the request, the fault and the retry policy."""

from collections.abc import Sequence

from dispatch_operator.api.enums import ErrorClass
from support.fake_api import Request
from support.faults.fault import WRITES, Fault, Lasts, Says
from support.faults.faulty_api import CHECK, COPY, JOB, START, WORKLOAD

OF_THE_CHECK = (("apply", CHECK), ("apply", WORKLOAD))
"""Requests of the AdmissionCheck's controller, whose failure refuses nothing."""


def refused_with(requests: Sequence[Request], place: int, fault: Fault, lasts: Lasts, retry: str) -> ErrorClass | None:
    """Return the class of the final refusal that a fault makes of a Start; None when the Start ends as without it.

    Args:
        requests: Those of the Start when all goes well.
        place: Which of them meets the fault.
        fault: What happens to it.
        lasts: How long.
        retry: The policy of the DispatchStart.
    """
    request, before = requests[place], requests[:place]
    has_train_job = any((one.verb, one.kind) == ("create", JOB) for one in before)
    has_started = any((one.verb, one.kind) == ("patch", START) for one in before)
    is_a_record = (request.verb, request.kind) == ("patch", START)
    if is_a_record or has_started or lasts is Lasts.OUTAGE or (request.verb, request.kind) in OF_THE_CHECK:
        # What is not recorded is reconciled again; and what was recorded as Started is never refused.
        return None
    if request.verb in WRITES and request.kind in {COPY, JOB}:
        if fault.carried_out and (request.verb == "create" or has_train_job):
            # A read by name finds what a create has made; with a TrainJob, anything unanswered is only tried again.
            return None
        if request.verb != "create" and (fault.name == "409 Conflict" or fault.name.startswith("404")):
            # A precondition that does not hold: it is reconciled again.
            return None
        if fault.says is Says.NO and fault.name != "409 AlreadyExists":
            return ErrorClass.REJECTED
    # Nothing happened, or nobody knows, or what held the name is gone again: not the end, but for the impatient;
    # and with a TrainJob, it never is (Definite failures only).
    return ErrorClass.UNREACHABLE if retry == "Never" and not has_train_job else None
