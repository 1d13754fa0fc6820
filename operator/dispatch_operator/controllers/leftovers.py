"""What Starts leave behind, by the name of their copy and TrainJob: looked at apart from any DispatchStart."""

from dataclasses import dataclass

from dispatch_operator.controllers.foreground_deletion import Departures
from dispatch_operator.controllers.orphaned_copies import Collector
from dispatch_operator.kube.store import Key
from dispatch_operator.reconcile.actions import Result


@dataclass(frozen=True)
class Tidier:
    """Looks at a name for a TrainJob that can't leave, and for a copy that nobody needs."""

    departures: Departures
    collector: Collector

    async def look(self, key: Key) -> Result:
        """Tidy up one name."""
        result = await self.departures.look(key)
        return result if result.requeue else await self.collector.look(key)
