"""An event loop for virtual time beside real connections: what is under way on a socket comes before time goes on."""

import asyncio
import selectors

POLLS = 40
"""After so many polls without an event; looptime, which moves time when nothing is to be done, makes 43."""
SECONDS = 0.002


class PatientSelector(selectors.DefaultSelector):
    """Waits a little for the kernel, where virtual time would go on at once, if a connection is open at all.

    Without it a busy machine lets an hour of virtual time pass between a request and its answer.
    """

    _in_vain = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Poll as ever; every so many polls in vain, wait."""
        ready = super().select(timeout)
        self._in_vain = 0 if ready or timeout != 0 else self._in_vain + 1
        # The event loop itself has one: it is woken by it.
        if self._in_vain < POLLS or len(self.get_map()) < 2:
            return ready
        self._in_vain = 0
        return super().select(SECONDS)


def new_patient_loop() -> asyncio.SelectorEventLoop:
    """Return such an event loop."""
    return asyncio.SelectorEventLoop(PatientSelector())
