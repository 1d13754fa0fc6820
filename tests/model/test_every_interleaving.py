"""Every interleaving of small worlds is safe and ends as promised, and would not without any one of the rules."""

import re
from pathlib import Path

import pytest

from support.model.explore import search
from support.model.mutants import MUTANTS, Mutant
from support.model.reconciliations import quickly
from support.model.scenario import Scenario
from support.model.scenarios import SCENARIOS
from support.summary import Summary


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_every_state_is_safe_and_ends_as_promised(scenario: Scenario, summary: Summary) -> None:
    with quickly():
        found = search(scenario)
    summary.states += found.states
    assert not found.broken, str(found)


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_search_notices_when_a_rule_is_missing(mutant: Mutant, summary: Summary) -> None:
    found = mutant.search()
    summary.mutants += 1
    summary.caught += mutant.notices in found.broken
    assert mutant.notices in found.broken


def test_every_safety_rule_of_the_contract_has_a_mutant() -> None:
    page = (Path(__file__).parents[2] / "docs" / "contract.md").read_text()
    (rules,) = re.findall(r"^## Safety rules$(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"^### (.+)$", rules, re.MULTILINE))
    assert len(named) == 7
    assert {mutant.rule for mutant in MUTANTS} >= named
