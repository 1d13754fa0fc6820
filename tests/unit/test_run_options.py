"""The command `run`: what is wrong with its options is told in words, before anything is served."""

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dispatch_operator.cli.main import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", *arguments])


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """A kubeconfig of a cluster that nothing is asked of."""
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [cluster], "contexts": [context], "users": [{"name": "u", "user": {}}],
    }  # fmt: skip
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "say which namespaces to serve"),
        (["-n", "team-a", "-A"], "--namespace and --all-namespaces can't be combined"),
        (["-n", ""], 'Invalid value for --namespace: "" is not the name of a namespace'),
        (["-n", "Bad Name"], '"Bad Name" is not the name of a namespace'),
        (["-n", "team-a", "-n", "a.b"], '"a.b" is not the name of a namespace'),
        (["-n", "x" * 64], "is not the name of a namespace"),
        (["-n", "team-a\n"], '"team-a\\n" is not the name of a namespace'),
        (["-A", "--health", "8080"], 'Invalid value for --health: "8080" is not HOST:PORT'),
        (["-A", "--health", ":8080"], "is not HOST:PORT"),
        (["-A", "--health", "0.0.0.0:65536"], "with a port of 1 to 65535"),
        (["-A", "--health", "0.0.0.0:0"], "with a port of 1 to 65535"),
        (["-A", "--health", "0.0.0.0:" + "9" * 5000], "with a port of 1 to 65535"),
        (["-A", "--health", "0.0.0.0:\u0668\u0660"], "with a port of 1 to 65535"),
        (["-A", "--lease", "name"], 'Invalid value for --lease: "name" is not NAMESPACE/NAME'),
        (["-A", "--lease", "/name"], '"" is not the name of a namespace'),
        (["-A", "--lease", "team-a/"], '"" is not the name of a Lease'),
        (["-A", "--lease", "team-a/b/c"], '"b/c" is not the name of a Lease'),
        (["-A", "--selector", "shard=a"], "--selector needs --lease NAMESPACE/NAME"),
        (["-A", "--lease", "n/l", "--selector", ""], 'Invalid value for --selector: "" is not a label selector'),
        (["-A", "--lease", "n/l", "-l", "shard=a b"], '"shard=a b" is not a label selector: KEY=VALUE, KEY!=VALUE'),
        (["-A", "--lease", "n/" + ".".join(["l" * 60] * 4), "-l", "a=b"], "is not the name of a Lease of a shard"),
    ],
)
def test_an_option_that_can_not_be_used_is_named(arguments: list[str], says: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr.replace("\n", " ") or says in result.stderr


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ("no-such-host.invalid", 'can\'t listen on "no-such-host.invalid" port 8080: '),
        ("x" * 300, "can't listen on "),
        ("192.0.2.1", "Cannot assign requested address"),
    ],
)
def test_an_address_that_is_not_this_machines_is_told(kubeconfig: str, host: str, says: str) -> None:
    result = run("-A", "--kubeconfig", kubeconfig, "--health", f"{host}:8080")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Invalid value for --health" in result.stderr
    assert says in result.stderr


def test_a_port_in_use_is_told(kubeconfig: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = run("-A", "--kubeconfig", kubeconfig, "--health", f"127.0.0.1:{port}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f'can\'t listen on "127.0.0.1" port {port}: Address already in use' in result.stderr
