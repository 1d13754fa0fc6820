"""What can't stand in an option, told before Kubernetes is asked for it in vain."""

import re

import click

from dispatch_operator.api.quoting import quote

_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
MOST_PORTS = 65_535
_SUBDOMAIN = rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*"


def must_be_namespace(name: str, option: str) -> None:
    """Refuse what no namespace can be called.

    Raises:
        click.BadParameter: The name is refused.
    """
    if not re.fullmatch(_LABEL, name):
        text = f"{quote(name)} is not the name of a namespace: lower-case letters, digits and -, such as team-a"
        raise click.BadParameter(text, param_hint=option)


def must_be_name(name: str, option: str, what: str) -> None:
    """Refuse what no object can be called.

    Raises:
        click.BadParameter: The name is refused.
    """
    if not re.fullmatch(_SUBDOMAIN, name):
        text = f"{quote(name)} is not the name of {what}: lower-case letters, digits, - and ., such as team-a"
        raise click.BadParameter(text, param_hint=option)


def address_in(text: str, option: str) -> tuple[str, int]:
    """Return the host and the port that a text names.

    Raises:
        click.BadParameter: It names none.
    """
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) <= MOST_PORTS:
        told = f"{quote(text)} is not HOST:PORT, such as 0.0.0.0:8080, with a port of 1 to {MOST_PORTS}"
        raise click.BadParameter(told, param_hint=option)
    return host.strip("[]"), int(port)
