"""How often the API server is asked what it serves."""

import pytest

from dispatch_operator.preflight.discovery import MOST_FOUND, Served
from support.fake_api import FakeApi
from support.openapi import served

TRAINER = "trainer.kubeflow.org/v1alpha1"
pytestmark = pytest.mark.looptime


async def test_an_answer_serves_all_for_a_while_and_a_document_for_as_long_as_it_is_served() -> None:
    api, now = FakeApi(documents=served()), [0.0]
    asked = Served(api, lambda: now[0])  # type: ignore[arg-type]
    hashes = await asked.hashes([TRAINER], timeout=1)
    for age in (0.0, 59.0):
        now[0] = age
        assert await asked.hashes([TRAINER], timeout=1, age=60) == hashes
        assert await asked.lacking(hashes, timeout=1) == ()
    assert [str(request) for request in api.requests] == ["get Served", "get Schemas"]
    now[0] = 60.0
    await asked.hashes([TRAINER], timeout=1, age=60)
    assert [str(request) for request in api.requests].count("get Served") == 2


async def test_what_is_remembered_is_bounded() -> None:
    api = FakeApi(documents=served())
    asked = Served(api)  # type: ignore[arg-type]
    first = await asked.hashes([TRAINER], timeout=1)
    await asked.lacking(first, timeout=1)
    for number in range(MOST_FOUND):
        api.documents[TRAINER]["info"] = {"version": str(number)}
        await asked.lacking(await asked.hashes([TRAINER], timeout=1), timeout=1)
    del api.documents[TRAINER]["info"]
    api.requests.clear()
    await asked.lacking(first, timeout=1)
    assert [str(request) for request in api.requests] == ["get Schemas"]
