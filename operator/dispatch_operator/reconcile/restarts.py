"""How often a job was run again, and the failure for which its JobSet did so (docs/contract.md, Restarts)."""

from dispatch_operator.api.models.status import Restart
from dispatch_operator.reconcile.failure_cause import cause_of_restart
from dispatch_operator.reconcile.observation import Observed

RESTARTED = "; the JobSet restarted it "


def counts(observed: Observed) -> dict[str, int]:
    """Return how often the JobSet restarted the job, and how often Kueue put it back into its queue."""
    told = observed.start.status.restarts or 0
    restarts = observed.job_set.status.restarts if observed.job_set else told
    stats = observed.workload.obj.status.scheduling_stats.evictions if observed.workload.obj else ()
    # Our own holds are evictions too, and no news to anybody.
    evictions = sum(one.count for one in stats if one.reason != "Deactivated" or one.underlying_cause)
    return {"restarts": restarts, **({"evictions": evictions} if evictions > 0 else {})}


def restart_to_explain(observed: Observed) -> bool:
    """Tell whether the JobSet restarted the job since it was last asked why."""
    restarts, told = observed.job_set.status.restarts if observed.job_set else 0, observed.start.status.last_restart
    return restarts > 0 and (told is None or told.number != restarts)


def last_restart(observed: Observed) -> dict[str, Restart | None]:
    """Return the last restart and its cause, for the status, when either is news."""
    if observed.job_set and not observed.job_set.status.restarts:
        # Another JobSet, which counts anew.
        return {"last_restart": None}
    if not observed.job_set or not restart_to_explain(observed) or observed.pods is None or observed.warnings is None:
        return {}
    number = observed.job_set.status.restarts
    cause = cause_of_restart(number, observed.pods, observed.warnings)
    told = Restart(number, cause.reason, cause.message, cause.pod, cause.container, cause.exit_code)
    return {"last_restart": told}


def told_of_restarts(observed: Observed) -> str:
    """Return what a message says of the JobSet's restarts; "" when there was none."""
    restarts = counts(observed)["restarts"]
    if not restarts:
        return ""
    told = {"last_restart": observed.start.status.last_restart, **last_restart(observed)}["last_restart"]
    why = f", last because of {told.cause}: {told.message}" if told and told.number == restarts else ""
    return f"{RESTARTED}{'once' if restarts == 1 else f'{restarts} times'}{why}"
