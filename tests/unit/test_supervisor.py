"""How the supervisor of deploy/samples goes on, and what docs/supervisors.md says of it."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def supervisor() -> ModuleType:
    spec = importlib.util.spec_from_file_location("supervisor", ROOT / "deploy" / "samples" / "supervisor.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("outcome", "want"),
    [
        ({"state": "Succeeded"}, None),
        ({"state": "Failed", "cause": "Evicted", "errorKind": "System"}, (3, 0)),
        ({"state": "Failed", "cause": "NonZeroExitCode", "errorKind": "User"}, None),
        ({"state": "Failed", "cause": "Unknown", "errorKind": "Unknown"}, None),
        ({"state": "Refused", "cause": "ErrInvalid"}, None),
        ({"state": "Refused", "cause": "ErrUnsupported"}, None),
        ({"state": "Refused", "cause": "ErrUnreachable"}, (2, 2)),
        ({"state": "Refused", "cause": "ErrReadOnly"}, (2, 2)),
        ({"state": "Refused", "cause": "ErrRejected"}, None),
        ({"state": "Cancelled", "cause": "Cancelled"}, None),
        ({"state": "Lost"}, None),
    ],
)
def test_it_goes_on_as_the_page_says(
    supervisor: ModuleType, outcome: dict[str, Any], want: tuple[int, int] | None
) -> None:
    assert supervisor.goes_on({"outcome": outcome}, 2, 1) == want
    page = (ROOT / "docs" / "supervisors.md").read_text().partition("## Go on")[2].partition("##")[0]
    told = [outcome["state"], outcome["errorKind"] if outcome["state"] == "Failed" else outcome.get("cause", "")]
    assert all(word in page for word in told)


def test_it_is_short() -> None:
    assert len((ROOT / "deploy" / "samples" / "supervisor.py").read_text().splitlines()) < 100
