"""The witness of Kubernetes' expansion, by the table of Kubernetes' own test."""

import pytest

from support.container_expansion import expand

VARIABLES = {"VAR_A": "A", "VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)", "VAR_EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "received"),
    [
        ("$(VAR_A)", "A"),
        ("___$(VAR_B)___", "___B___"),
        ("$(VAR_A)-$(VAR_B)", "A-B"),
        ("f000-$(VAR_REF)", "f000-$(VAR_A)"),
        ("$(VAR_EMPTY)", ""),
        ("$(VAR_MISSING)", "$(VAR_MISSING)"),
        ("$$(VAR_A)", "$(VAR_A)"),
        ("$$$(VAR_A)", "$A"),
        ("$$$$(VAR_A)", "$$(VAR_A)"),
        ("$VAR_A)", "$VAR_A)"),
        ("${VAR_A}", "${VAR_A}"),
        ("$(VAR_A", "$(VAR_A"),
        ("$$_$$_", "$_$_"),
        ("$()", "$()"),
        ("$", "$"),
        ("$$", "$"),
        ("$é", "$é"),
    ],
)
def test_expands_as_kubernetes_does(text: str, received: str) -> None:
    assert expand(text, VARIABLES) == received.encode()


def test_can_garble_as_older_versions_do() -> None:
    assert expand("$é", garbles=True) == "$Ã".encode() + b"\xa9"
    assert expand("$a$$", garbles=True) == b"$a$"
