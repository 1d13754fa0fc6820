"""A pod's token is rotated under a running operator: every client of it goes on with the new one."""

import ssl
from pathlib import Path

import trustme

from cluster.conftest import RELEASE_NAMESPACE, Team
from controlplane.kubectl import KubectlError
from support.builders import make_start
from support.fault_proxy import FaultProxy
from support.service import serving
from support.waiting import until

# The kubelet mounts the account's files where a test must not write; what is read there is looked at more often.
IN_CLUSTER = """
import datetime
from kubernetes_asyncio.config import incluster_config as it

it.SERVICE_TOKEN_FILENAME, it.SERVICE_CERT_FILENAME = {token!r}, {authority!r}
it.TOKEN_REFRESH_PERIOD = datetime.timedelta(seconds=1)
from dispatch_operator.cli.main import main
main()
"""


def token_bound_to(team: Team, secret: str) -> str:
    """Return a token of the operator's account that is good for as long as a Secret exists."""
    namespaced = f"--namespace={RELEASE_NAMESPACE}"
    team.cluster.kubectl("create", "secret", "generic", secret, namespaced)
    bound = ("--bound-object-kind=Secret", f"--bound-object-name={secret}")
    return team.cluster.kubectl("create", "token", "dispatch-operator", namespaced, *bound).strip()


def is_accepted(team: Team, token: str) -> bool:
    """Tell whether the API server, which remembers a token for some seconds, still accepts it."""
    arguments = ("auth", "whoami", f"--token={token}", f"--server={team.cluster.server}")
    try:
        team.cluster.kubectl(*arguments, f"--certificate-authority={team.cluster.ca_file}", "--kubeconfig=/dev/null")
    except KubectlError:
        return False
    return True


def test_a_rotated_token_is_picked_up_by_every_client(team: Team, account: Path, tmp_path: Path) -> None:
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    old, new = (token_bound_to(team, f"{team.namespace}-{age}") for age in ("old", "new"))
    (tmp_path / "token").write_text(old)
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    code = IN_CLUSTER.format(token=str(tmp_path / "token"), authority=str(tmp_path / "ca.crt"))
    with FaultProxy(account, tmp_path, tls).running() as proxy:
        pod = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(proxy.port)}
        arguments = ("--namespace", team.namespace)
        with serving(None, *arguments, environment=pod, program=("-c", code)):
            team.apply(make_start(gate="Open"))
            team.until_phase("llama-s1", "Succeeded")
            (tmp_path / "token").write_text(new)
            team.cluster.kubectl("delete", "secret", f"{team.namespace}-old", f"--namespace={RELEASE_NAMESPACE}")
            until("the old token is refused", lambda: not is_accepted(team, old))
            # A watch is accepted once, and goes on; only a new one shows with which token it comes.
            proxy.hang_up_watches()
            team.apply(make_start("again", submission=2, gate="Open"))
            team.until_phase("again", "Succeeded")
