"""What Starts leave behind, by the name of their copy and TrainJob: reconciled apart from any DispatchStart."""

from dataclasses import dataclass

from dispatch_operator.controllers.foreground_deletion import ForegroundDeletion
from dispatch_operator.controllers.orphaned_copies import OrphanedCopies
from dispatch_operator.kube.index import Key
from dispatch_operator.reconcile.actions import Result


@dataclass(frozen=True)
class Leftovers:
    """Reconciles a name for a TrainJob that can't leave, and for a copy that nobody needs."""

    foreground_deletion: ForegroundDeletion
    orphaned_copies: OrphanedCopies

    async def reconcile(self, key: Key) -> Result:
        """Clean up one name."""
        result = await self.foreground_deletion.reconcile(key)
        return result if result.requeue else await self.orphaned_copies.reconcile(key)
