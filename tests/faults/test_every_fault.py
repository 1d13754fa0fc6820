"""Every request of every scenario meets every fault: one TrainJob with one owned copy, or a refusal with nothing left."""

import pytest

from support.faults.play import Tally, every_crash, every_fault
from support.faults.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize("retry", ["OnChange", "Never"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_every_fault_of_every_request_is_survived(scenario: Scenario, retry: str, tally: Tally) -> None:
    assert await every_fault(scenario, retry, tally) == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_a_crash_at_every_request_is_survived(scenario: Scenario, tally: Tally) -> None:
    assert await every_crash(scenario, tally) == []
