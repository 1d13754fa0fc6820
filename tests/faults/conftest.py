"""The numbers of the exhaustive run stand at the end of a test session."""

import pytest

from support.faults.play import Tally

TALLY = pytest.StashKey[Tally]()


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Tally:
    return request.config.stash.setdefault(TALLY, Tally())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if tally := config.stash.get(TALLY, None):
        terminalreporter.write_line(f"{tally.faults} faults, {tally.survived} survived")
