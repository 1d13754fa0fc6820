"""What Starts leave behind, by the name of their copy and TrainJob: looked at apart from any DispatchStart."""

from dataclasses import dataclass

from dispatch_operator.controllers.foreground_deletion import ForegroundDeletion
from dispatch_operator.controllers.orphaned_copies import OrphanedCopies
from dispatch_operator.kube.store import Key
from dispatch_operator.reconcile.actions import Result


@dataclass(frozen=True)
class Leftovers:
    """Reconciles a name for a TrainJob that can't leave, and for a copy that nobody needs."""

    foreground_deletion: ForegroundDeletion
    collector: OrphanedCopies

    async def reconcile(self, key: Key) -> Result:
        """Tidy up one name."""
        result = await self.foreground_deletion.reconcile(key)
        return result if result.requeue else await self.collector.reconcile(key)
