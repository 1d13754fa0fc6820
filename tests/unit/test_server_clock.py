"""The API server's clock, as its answers tell it."""

from email.utils import formatdate

import pytest

from dispatch_operator.kube.server_clock import ServerClock

EPOCH = 1_767_225_600.0


class World:
    """A server whose clock is ahead of the operator's; time passes for both."""

    def __init__(self, ahead: float) -> None:
        self.passed = 1_000.0
        self.ahead = ahead
        self.set_by = 0.0
        self.clock = ServerClock(lambda: EPOCH + self.passed + self.set_by, lambda: self.passed)

    @property
    def server(self) -> float:
        return EPOCH + self.passed + self.ahead

    def ask(self, *, there: float = 0.1, back: float = 0.1) -> None:
        sent = self.passed
        self.passed += there
        date = formatdate(int(self.server), usegmt=True)
        self.passed += back
        self.clock.hear(date, sent)


@pytest.mark.parametrize("ahead", [0.0, 0.4, -0.4, 5.0, -5.0, 90_000.0, -90_000.0])
def test_it_is_the_servers_however_far_the_operators_is_off(ahead: float) -> None:
    world = World(ahead)
    for _ in range(20):
        world.ask()
        world.passed += 0.37
        assert abs(world.clock() - world.server) <= 1.2


def test_a_clock_that_is_right_is_never_moved() -> None:
    world = World(0.0)
    for _ in range(50):
        before = world.clock() - world.passed
        world.ask(there=0.0, back=2.3)
        world.passed += 0.61
        assert world.clock() - world.passed == before


def test_it_does_not_follow_when_the_operators_is_set() -> None:
    world = World(0.0)
    world.set_by = 3_600.0
    assert world.clock() == world.server


@pytest.mark.parametrize("date", [None, "", "soon", "Thu, 99 Jan 2026 00:00:00 GMT", "0"])
def test_what_is_no_date_teaches_nothing(date: str | None) -> None:
    world = World(0.0)
    world.clock.hear(date, world.passed)
    assert world.clock() == world.server
