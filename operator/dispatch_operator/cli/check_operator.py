"""The command `dispatch-operator check-operator`: what the chart's test asks (docs/contract.md, Command line)."""

import threading
import time
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

import click

from dispatch_operator.cli.options import address_in
from dispatch_operator.cli.output import REFUSED, Command, print_out, tell

ASKED_EVERY = 1.0
"""Seconds."""
LONGEST_ANSWER = 5.0
"""Seconds until an answer that does not come is given up."""


@click.command("check-operator", cls=Command)
@click.argument("address", metavar="HOST:PORT")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to wait until it is ready.",
)
def check_operator_command(address: str, timeout: float) -> None:
    """Say whether an operator works, by its /readyz, and if not why.

    HOST:PORT is where it answers with --health; with the chart, its Service.

    \b
    Exit code:
      0  it is ready, or waits for its Lease and could take over
      1  it is not, or does not answer
      2  the address can't be used

    \b
    Examples:
      dispatch-operator check-operator dispatch-operator.dispatch.svc:8080
      dispatch-operator check-operator localhost:8080 --timeout 0
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    host, port = address_in(address, "HOST:PORT")
    deadline = time.monotonic() + timeout
    while True:
        is_ready, told = _ask(host, port)
        if is_ready:
            print_out(f"{told}\n")
            return
        if time.monotonic() >= deadline:
            for line in told.splitlines():
                tell(f"{address}: {line}")
            raise SystemExit(REFUSED)
        threading.Event().wait(ASKED_EVERY)


def _ask(host: str, port: int) -> tuple[bool, str]:
    """Return whether an operator is ready, and what it says, or why it says nothing."""
    connection = HTTPConnection(host, port, timeout=LONGEST_ANSWER)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        return answer.status == HTTPStatus.OK, answer.read().decode(errors="replace").strip() or str(answer.status)
    except (OSError, HTTPException) as error:
        return False, f"no answer: {error or type(error).__name__}"
    finally:
        connection.close()
