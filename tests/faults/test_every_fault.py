"""Every request of every scenario meets every fault: one TrainJob with one owned copy, or a refusal with nothing left."""

import logging
from collections.abc import Iterator

import pytest

from support.faults.play import every_crash, every_fault, every_meddling, every_older_crd
from support.faults.scenarios import SCENARIOS, FaultScenario
from support.summary import Summary

pytestmark = [pytest.mark.looptime(noop_cycles=0), pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """Keep the log of many thousand failures from being kept."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


# The retry policy matters only while a Start is under way.
@pytest.mark.parametrize(
    ("scenario", "retry"),
    [(one, retry) for one in SCENARIOS for retry in ("OnChange", "Never") if one.starts or retry == "OnChange"],
    ids=str,
)
async def test_every_fault_of_every_request_is_survived(scenario: FaultScenario, retry: str, summary: Summary) -> None:
    wrong = await every_fault(scenario, retry, summary)
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if one.is_meddled_with], ids=str)
async def test_marks_that_are_taken_away_at_any_moment_harm_nothing(scenario: FaultScenario, summary: Summary) -> None:
    assert await every_meddling(scenario, summary) == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_a_crash_at_every_request_is_survived(scenario: FaultScenario, summary: Summary) -> None:
    assert await every_crash(scenario, summary) == []


@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if one.starts], ids=str)
async def test_an_older_crd_that_is_served_for_a_while_loses_nothing(scenario: FaultScenario, summary: Summary) -> None:
    wrong = await every_older_crd(scenario, summary)
    assert wrong == [], "\n".join(wrong)
