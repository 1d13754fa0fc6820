"""Whether the copy of a gated job still is what was submitted (contract section 12)."""

from dispatch_operator.reconcile.actions import Action, ReadCopy, ReadRuntime
from dispatch_operator.reconcile.observation import Object, Observed, at
from dispatch_operator.reconcile.ownership import is_going, uid_of


def check_copy(observed: Observed, *, opening: bool) -> Action | str | None:
    """See that the copy still is what was submitted: a live read before opening, else only when a watch says it is not.

    Returns:
        What must be read first, what is wrong with the copy, or None when nothing is.
    """
    suspect = _altered(observed) is not None
    if not observed.copy.live and (opening or suspect):
        error = observed.failure(ReadCopy)
        return f"the copy can't be read: {error}" if error else ReadCopy()
    if not suspect:
        return None
    source: Object = at(observed.start, "status", "source") or {}
    if uid_of(observed.copy.obj) != at(observed.start, "status", "copy", "uid") or not source:
        return _altered(observed)
    # It was edited; perhaps it was edited back. Only the source can tell, if it is still the one that was copied.
    if not observed.runtime.live:
        error = observed.failure(ReadRuntime)
        return f"the source can't be read: {error}" if error else ReadRuntime(source["kind"], source["name"])
    unchanged = (uid_of(observed.runtime.obj), at(observed.runtime.obj, "metadata", "generation")) == (
        source.get("uid"),
        source.get("generation"),
    )
    restored = unchanged and at(observed.runtime.obj, "spec") == at(observed.copy.obj, "spec")
    return None if restored else _altered(observed)


def _altered(observed: Observed) -> str | None:
    """Say what is wrong with the copy as it was last seen: its spec's generation is 1 as long as nobody edits it."""
    held: Object = at(observed.start, "status", "copy") or {}
    name = f"the copy, TrainingRuntime {held.get('name')},"
    if observed.copy.obj is None:
        return f"{name} is gone; the gate is not opened"
    if uid_of(observed.copy.obj) != held.get("uid"):
        return f"{name} was replaced by another; the gate is not opened"
    # The deletion of an object that a finalizer holds counts as one more generation.
    first = 2 if is_going(observed.copy.obj) else 1
    if (at(observed.copy.obj, "metadata", "generation") or first) > first:
        return f"{name} was changed; restore its spec, or submit again; the gate is not opened"
    return None
