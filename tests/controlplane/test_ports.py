"""Ports are nobody else's."""

import socket
from pathlib import Path

import pytest

from controlplane import ports


def test_ports_are_different_and_outside_what_the_kernel_gives_away(tmp_path: Path) -> None:
    with ports.reserved(20, tmp_path) as numbers:
        assert len(set(numbers)) == 20
        assert all(ports.FIRST_PORT <= number <= ports.LAST_PORT < 32_768 for number in numbers)


def test_what_one_holds_another_does_not_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "LAST_PORT", ports.FIRST_PORT + 30)
    with ports.reserved(5, tmp_path) as first, ports.reserved(5, tmp_path) as second:
        assert set(first).isdisjoint(second)


def test_a_port_is_free_again_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ports.reserved(1, tmp_path) as first:
        pass
    monkeypatch.setattr(ports, "FIRST_PORT", first[0])
    monkeypatch.setattr(ports, "LAST_PORT", first[0])
    with ports.reserved(1, tmp_path) as second:
        assert second == first


def test_a_port_that_a_server_listens_on_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(ports, "FIRST_PORT", port)
        monkeypatch.setattr(ports, "LAST_PORT", port)
        with pytest.raises(ports.NoFreePortError, match=f"no 1 free ports from {port}"), ports.reserved(1, tmp_path):
            pass
