"""The command line of every program, and the configuration files that it reads."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from controlplane.ports import LOOPBACK
from controlplane.processes import Program, Stage
from controlplane.site import ADMINISTRATORS, Site
from controlplane.variation import merged

DATA = Path(__file__).with_name("data")
# The defaults are for clusters whose API server has more to do than these few controllers.
CLIENT_LIMITS = ("--kube-api-qps=200", "--kube-api-burst=400")

SERVICE_CIDR = "10.0.0.0/24"
POD_CIDR = "10.64.0.1/10"

# Kueue reads its metrics certificate from here and from nowhere else.
KUEUE_METRICS_CERTIFICATE = Path("/etc/kueue/metrics/certs")


def etcd(site: Site) -> Program:
    """The store; its data need not outlive the machine, so nothing is synced to disk."""
    pair = site.authority.server("etcd")
    url, peer_url = f"https://{LOOPBACK}:{site.ports.etcd}", f"https://{LOOPBACK}:{site.ports.etcd_peer}"
    files = {"cert-file": pair.certificate, "key-file": pair.key, "trusted-ca-file": site.authority.file}
    return Program(
        "etcd",
        (
            site.kubernetes.program("kubernetes"),
            "etcd",
            "--name=etcd",
            f"--data-dir={site.home('etcd') / 'data'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=etcd={peer_url}",
            "--client-cert-auth",
            "--peer-client-cert-auth",
            *(f"--{name}={path}" for name, path in files.items()),
            *(f"--peer-{name}={path}" for name, path in files.items()),
            "--log-level=warn",
        ),
        Stage.STORE,
    )


def kube_apiserver(site: Site) -> Program:
    """The API server, with RBAC and an audit log."""
    pair = site.authority.server("kube-apiserver")
    to_etcd = site.authority.client("kube-apiserver")
    tokens = site.tokens
    return Program(
        "kube-apiserver",
        (
            site.kubernetes.program("kubernetes"),
            "kube-apiserver",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={site.ports.server}",
            f"--tls-cert-file={pair.certificate}",
            f"--tls-private-key-file={pair.key}",
            f"--client-ca-file={site.authority.file}",
            f"--etcd-servers=https://{LOOPBACK}:{site.ports.etcd}",
            f"--etcd-cafile={site.authority.file}",
            f"--etcd-certfile={to_etcd.certificate}",
            f"--etcd-keyfile={to_etcd.key}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={tokens.certificate}",
            f"--service-account-signing-key-file={tokens.key}",
            f"--service-cluster-ip-range={SERVICE_CIDR}",
            # There is no Service's endpoint to keep: a loopback address can't be one.
            "--endpoint-reconciler-type=none",
            f"--audit-policy-file={DATA / 'audit-policy.yaml'}",
            f"--audit-log-path={site.audit_log}",
            # One file, never rotated: whoever counts requests wants them all.
            "--audit-log-maxsize=0",
            "--profiling=false",
        ),
        Stage.SERVER,
    )


def kube_controller_manager(site: Site) -> Program:
    """Kubernetes' own controllers: Jobs, garbage collection, service accounts, nodes and more."""
    kubeconfig = site.issue_kubeconfig("kube-controller-manager", "system:kube-controller-manager")
    tokens = site.tokens
    controllers = "*" if site.variation.garbage_collection else "*,-garbage-collector-controller"
    return Program(
        "kube-controller-manager",
        (
            site.kubernetes.program("kubernetes"),
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--controllers={controllers}",
            # The simulated nodes send no heartbeats: none of them is to be taken for dead.
            "--node-monitor-grace-period=24h",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={tokens.key}",
            f"--root-ca-file={site.authority.file}",
            "--profiling=false",
            *CLIENT_LIMITS,
        ),
    )


def kube_scheduler(site: Site) -> Program:
    """The scheduler."""
    kubeconfig = site.issue_kubeconfig("kube-scheduler", "system:kube-scheduler")
    return Program(
        "kube-scheduler",
        (
            site.kubernetes.program("kubernetes"),
            "kube-scheduler",
            f"--kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            "--profiling=false",
            *CLIENT_LIMITS,
        ),
    )


def kwok(site: Site) -> Program:
    """The simulated nodes' kubelet."""
    kubeconfig = site.issue_kubeconfig("kwok", "kwok", ADMINISTRATORS)
    return Program(
        "kwok",
        (
            site.controllers.program("kwok"),
            f"--kubeconfig={kubeconfig}",
            f"--config={DATA / 'stages.yaml'}",
            "--manage-all-nodes",
            f"--node-ip={LOOPBACK}",
            f"--cidr={POD_CIDR}",
        ),
        environment={"HOME": str(site.home("kwok"))},
    )


def trainer(site: Site) -> Program:
    """Kubeflow Trainer."""
    # It has no setting for the certificates' folder: they are expected in the folder for temporary files.
    temporary = site.home("trainer") / "tmp"
    certificates = temporary / "k8s-webhook-server" / "serving-certs"
    certificates.parent.mkdir(parents=True)
    certificates.symlink_to(site.authority.server("trainer").certificate.parent)
    configuration = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "certManagement": {"enable": False},
        "webhook": {"host": LOOPBACK, "port": site.ports.trainer},
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        "controller": {"groupKindConcurrency": {"TrainJob.trainer.kubeflow.org": 5}},
        "clientConnection": {"qps": 50, "burst": 100},
    }
    return _controller(site, "trainer", "trainer-controller-manager", configuration, {"TMPDIR": str(temporary)})


def jobset(site: Site) -> Program:
    """JobSet."""
    configuration = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "webhook": _webhook(site, "jobset"),
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
    }
    return _controller(site, "jobset", "jobset", configuration)


def kueue(site: Site) -> Program:
    """Kueue, for Jobs, JobSets and TrainJobs.

    Raises:
        PermissionError: Its metrics certificate is missing and can't be written; the message says what to do.
    """
    _provide_metrics_certificate(site)
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "internalCertManagement": {"enable": False},
        "webhook": _webhook(site, "kueue"),
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 300, "burst": 500},
        "integrations": {
            "frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"],
        },
        # Its API server for pending workloads would have to be registered with the aggregator.
        "featureGates": {"VisibilityOnDemand": False},
    }
    gates = {"featureGates": site.variation.kueue_feature_gates}
    return _controller(site, "kueue", "kueue", merged(merged(configuration, site.variation.kueue_config), gates))


def _controller(
    site: Site,
    name: str,
    binary: str,
    configuration: Mapping[str, object],
    environment: Mapping[str, str] | None = None,
) -> Program:
    home = site.home(name)
    file = home / "configuration.json"
    file.write_text(json.dumps(configuration, indent=2))
    kubeconfig = site.issue_kubeconfig(name, name, ADMINISTRATORS)
    variables = {"HOME": str(home), "KUBECONFIG": str(kubeconfig), **(environment or {})}
    return Program(name, (site.controllers.program(binary), f"--config={file}"), environment=variables)


def _webhook(site: Site, name: str) -> dict[str, object]:
    folder = site.authority.server(name).certificate.parent
    return {"host": LOOPBACK, "port": site.ports.webhook(name), "certDir": str(folder)}


def _provide_metrics_certificate(site: Site) -> None:
    """Put a certificate where Kueue insists on one; here it serves nothing with it, so that any will do."""
    folder = KUEUE_METRICS_CERTIFICATE
    names = ("tls.key", "tls.crt")
    if all(os.access(folder / name, os.R_OK) for name in names):
        return
    source = site.authority.server("kueue-metrics").certificate.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock_on(folder):
            # Another control plane that starts at the same time must not make a pair out of two halves.
            if not (folder / names[-1]).exists():
                for name in names:
                    shutil.copyfile(source / name, folder / f".{name}")
                    (folder / f".{name}").replace(folder / name)
    except PermissionError as error:
        raise PermissionError(
            f"Kueue reads a certificate from {folder}, which can't be written: run once "
            f"`sudo install -d -o $(id -u) {folder}`, or start without Kueue"
        ) from error


@contextmanager
def _lock_on(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
