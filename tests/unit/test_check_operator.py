"""The command that says whether an operator works, against an operator's own answers over real HTTP."""

import asyncio
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from dispatch_operator.cli import check_operator
from dispatch_operator.cli.main import main
from dispatch_operator.kube.health import Health, answering
from support.ports import free_port


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check-operator", *arguments])


async def checked(unready: Callable[[float], list[str]] | None, *options: str) -> Result:
    """Return what the command says of an operator that lacks this."""
    health, port = Health(lambda: True), free_port()
    health.unready = unready
    health.remarks = lambda: ["namespace team-b does not exist"] if unready else []
    async with answering(health, "127.0.0.1", port):
        return await asyncio.to_thread(check, f"127.0.0.1:{port}", *options)


async def test_one_that_is_ready_succeeds_with_what_it_says() -> None:
    result = await checked(lambda _: [])
    assert (result.exit_code, result.stdout) == (0, "ok\nnamespace team-b does not exist\n")


async def test_one_that_waits_for_its_lease_succeeds() -> None:
    result = await checked(None)
    assert (result.exit_code, result.stdout) == (0, "waiting for the Lease\n")


async def test_one_that_is_not_ready_fails_with_what_is_wrong() -> None:
    result = await checked(lambda _: ["TrainJob has not been listed yet"], "--timeout=0")
    assert result.exit_code == 1
    assert "TrainJob has not been listed yet" in result.stderr


async def test_one_that_becomes_ready_in_time_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_operator, "ASKED_EVERY", 0.01)
    wrong = ["not yet"] * 3
    result = await checked(lambda _: [wrong.pop()] if wrong else [])
    assert (result.exit_code, wrong) == (0, [])


def test_one_that_does_not_answer_fails() -> None:
    result = check(f"127.0.0.1:{free_port()}", "--timeout=0")
    assert result.exit_code == 1
    assert "no answer: " in result.stderr
    assert "refused" in result.stderr


@pytest.mark.parametrize("address", ["8080", "http://x", "x:0", ":8080"])
def test_what_is_no_address_is_refused(address: str) -> None:
    result = check(address)
    assert result.exit_code == 2
    assert "is not HOST:PORT" in result.stderr
