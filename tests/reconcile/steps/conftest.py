"""One DispatchStart that nothing has been done for, and its operator."""

import pytest

from support.builders import make_backend, make_runtime, make_start
from support.fake_api import FakeApi
from support.operator import FakeOperator


@pytest.fixture
def api() -> FakeApi:
    api = FakeApi()
    for obj in (make_runtime(), make_backend(), make_start()):
        api.put(obj, **({"observedGeneration": -1} if obj["kind"] == "DispatchStart" else {}))
    return api


@pytest.fixture
def operator(api: FakeApi) -> FakeOperator:
    return FakeOperator(api)
