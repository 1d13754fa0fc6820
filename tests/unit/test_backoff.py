"""How long a request that failed waits."""

import pytest

from dispatch_operator.kube.backoff import LONGEST_RETRY_AFTER_SECONDS, backoff


@pytest.mark.parametrize(
    ("failures", "least", "most"), [(1, 1, 2), (2, 2, 4), (5, 16, 32), (7, 30, 60), (100_000, 30, 60)]
)
def test_it_doubles_up_to_a_minute_and_half_of_it_is_random(failures: int, least: float, most: float) -> None:
    waits = [backoff(failures) for _ in range(300)]
    assert least <= min(waits) <= max(waits) <= most
    assert max(waits) - min(waits) > (most - least) / 2


@pytest.mark.parametrize(
    ("retry_after", "want"),
    [(17.0, 17.0), (float("9" * 400), LONGEST_RETRY_AFTER_SECONDS), (1e300, LONGEST_RETRY_AFTER_SECONDS)],
)
def test_what_a_server_asks_for_counts_up_to_a_bound(retry_after: float, want: float) -> None:
    assert backoff(1, retry_after) == want


def test_it_is_not_shorter_because_a_server_asks_for_less() -> None:
    assert backoff(7, 1.0) >= 30


def test_what_must_be_renewed_soon_waits_for_less() -> None:
    assert max(backoff(100, longest=30.0) for _ in range(100)) <= 30
