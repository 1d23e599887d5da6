"""A real Kubernetes API: etcd and kube-apiserver on 127.0.0.1, with RBAC, and nothing else of Kubernetes.

In: nothing, or a folder. Out: kubeconfigs (of an administrator, of any user), tokens, kubectl. No controller runs: a
namespace must be created before it is used, deleted namespaces stay Terminating, owner references collect nothing.
Demo and tests start it; tests mostly share the session's (fixture ``apiserver``). A whole node starts it for pods
(``Exposure``), and brings what is missing here.
"""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from realparts import kubernetes_binaries, tls
from realparts.ports import HeldPorts, accepts
from realparts.processes import ManagedProcess
from realparts.progress import step
from realparts.started import Started
from waiting import limit, until

ADMIN = "admin"
ADMIN_GROUPS = ("system:masters",)
START_TIMEOUT_SECONDS = 120.0
_NOT_YET = (
    "accessor error",  # a definition that was made a moment ago has no conditions at all
    # One that is established is found a moment later.
    "doesn't have a resource type",
    "could not find the requested resource",
)


class KubectlFailed(RuntimeError):
    """kubectl ended with an error; the message holds what it printed."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """How pods and kubelets reach it. It then listens on all addresses, and pods need ServiceAccounts that exist."""

    address: str
    """What it publishes as its own address, for the service ``kubernetes``."""
    port: int
    service_range: str
    """The addresses of services (CIDR)."""
    hosts: Sequence[str] = ()
    """Further names and addresses that its certificate is good for; the first is where kubeconfigs find it."""


class ApiServer(Started):
    """A running API server. A context manager: started on entry, gone on exit."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        users: Mapping[str, Sequence[str]] | None = None,
        exposure: Exposure | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """Lay it out; nothing runs yet. ``users`` (name to groups) get static tokens, and so does the administrator.
        ``options`` are further ones of kube-apiserver.

        A directory that is given is kept at the end, one that is not is removed. Without ``exposure`` it serves
        127.0.0.1 alone.
        """
        self._exposure = exposure
        self._options = options
        self._temporary = directory is None
        self.directory = (directory or Path(tempfile.mkdtemp(prefix="apiserver-"))).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self._ports = HeldPorts()
        self._port = exposure.port if exposure else self._ports.take()
        self._etcd_port = self._ports.take()
        self._peer_port = self._ports.take()
        self._authority = tls.Authority(self.directory / "tls")
        self._tokens = {name: secrets.token_urlsafe(24) for name in (ADMIN, *(users or {}))}
        self._groups: dict[str, Sequence[str]] = {**(users or {}), ADMIN: ADMIN_GROUPS}
        self._etcd: ManagedProcess | None = None
        self._apiserver: ManagedProcess | None = None
        host = next(iter(exposure.hosts), exposure.address) if exposure else "127.0.0.1"
        self.url = f"https://{host}:{self._port}"
        self.ca = self._authority.path
        self.kubeconfig = self.directory / "kubeconfig"

    def start(self) -> None:
        """Start etcd and the API server and wait until it is ready. Raises StartFailed with the log's end."""
        server, etcd = kubernetes_binaries.kube_apiserver(), kubernetes_binaries.etcd()  # not part of the time below
        with step("starting kube-apiserver"):
            try:
                self._start(server, etcd)
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """End both processes at once: no one will read their data again."""
        for process in self.processes():
            process.resume()
            process.kill()
        self._ports.release()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def processes(self) -> list[ManagedProcess]:
        """What runs for it; ``detach`` each to leave it running."""
        return [process for process in (self._apiserver, self._etcd) if process is not None]

    def stop_apiserver(self) -> None:
        """End kube-apiserver alone: connections are refused; etcd keeps what was written."""
        self._server.kill()

    def start_apiserver(self) -> None:
        """Start it again, at the same address, and wait until it is ready."""
        self._server.start()
        self._server.wait_ready(self._is_ready, START_TIMEOUT_SECONDS)

    def pause_apiserver(self) -> None:
        """Freeze it: connections stay open and nothing answers."""
        self._server.pause()

    def resume_apiserver(self) -> None:
        """Let it go on and wait until it answers."""
        self._server.resume()
        self._server.wait_ready(self._is_ready, START_TIMEOUT_SECONDS)

    def restart(self) -> None:
        """End kube-apiserver and start it again; every watch breaks."""
        self.stop_apiserver()
        self.start_apiserver()

    def token(self, user: str = ADMIN) -> str:
        """The static token of the administrator, or of a user who was named at construction."""
        return self._tokens[user]

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for any user: with the static token if there is one, else a certificate for these groups."""
        path = self.directory / f"kubeconfig-{user.replace(':', '-').replace('/', '-')}"
        if user in self._tokens and not groups:
            credentials = {"token": self._tokens[user]}
        else:
            certificate, key = self._authority.issue(user, organizations=groups)
            credentials = {"client-certificate-data": _encoded(certificate), "client-key-data": _encoded(key)}
        self._write_kubeconfig(path, user, credentials)
        return path

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a service account's own token (TokenRequest); the account must exist."""
        path = self.directory / f"kubeconfig-{namespace}-{name}"
        self._write_kubeconfig(path, name, {"token": self.service_account_token(namespace, name)})
        return path

    def service_account_token(self, namespace: str, name: str) -> str:
        """A token of a service account, by TokenRequest."""
        return self.kubectl("create", "token", name, "--namespace", namespace).strip()

    def kubectl(self, *arguments: str, stdin: str | None = None, kubeconfig: Path | None = None) -> str:
        """Run kubectl as the administrator (or with that kubeconfig); what it printed. Raises KubectlFailed."""
        cache, config = self.directory / "kubectl-cache", kubeconfig or self.kubeconfig
        ended = subprocess.run(
            # What it remembers of a server goes by the port, which another server had, or will have.
            [kubernetes_binaries.kubectl(), "--cache-dir", cache, "--kubeconfig", config, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit(120),
        )
        if ended.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {ended.stderr.strip() or ended.stdout.strip()}")
        return ended.stdout

    def apply(self, *paths: Path) -> None:
        """Apply files, or all files of folders, by server-side apply, and wait until kinds are found and served."""
        files = [part for path in paths for part in ("-f", str(path))]
        applied = self.kubectl("apply", "--server-side", "--force-conflicts", "-o", "name", *files).split()
        definitions = [name for name in applied if name.startswith("customresourcedefinition.")]
        if not definitions:
            return
        kinds = ",".join(name.partition("/")[2] for name in definitions)
        self._until_found("wait", "--for=condition=Established", "--timeout=30s", *definitions)
        self._until_found("get", kinds, "--all-namespaces", "-o", "name")

    def _until_found(self, *arguments: str) -> None:
        """Run kubectl until it finds what was defined a moment ago."""

        def found() -> bool:
            try:
                self.kubectl(*arguments)
            except KubectlFailed as problem:
                if not any(words in str(problem) for words in _NOT_YET):
                    raise
                return False
            return True

        until(found, 30, f"kubectl {' '.join(arguments)} finds them", every=0.2)

    def create_namespace(self, name: str) -> str:
        """Create a namespace, and say its name again."""
        self.kubectl("create", "namespace", name)
        return name

    @property
    def signing_key(self) -> Path:
        """The private key that service accounts' tokens are signed with."""
        return self.directory / "tls" / tls.SIGNING_KEY

    @property
    def _server(self) -> ManagedProcess:
        if self._apiserver is None:
            raise RuntimeError("the API server was never started")
        return self._apiserver

    def _start(self, server: Path, etcd: Path) -> None:
        self._write_kubeconfig(self.kubeconfig, ADMIN, {"token": self._tokens[ADMIN]})
        self._etcd = ManagedProcess("etcd", self._etcd_command(etcd), log=self.directory / "etcd.log")
        self._etcd.start()
        self._etcd.wait_ready(lambda: accepts(self._etcd_port), START_TIMEOUT_SECONDS, every_seconds=0.02)
        log = self.directory / "kube-apiserver.log"
        self._apiserver = ManagedProcess("kube-apiserver", self._server_command(server), log=log)
        self.start_apiserver()

    def _etcd_command(self, etcd: Path) -> list[str]:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        return [
            str(etcd),
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
            "--unsafe-no-fsync",  # its data need not outlive the machine
        ]

    def _server_command(self, server: Path) -> list[str]:
        exposure = self._exposure
        hosts = [exposure.address, *exposure.hosts] if exposure else []
        certificate, key = self._authority.issue("kube-apiserver", hosts=hosts)
        signing, public = tls.signing_keys(self.directory / "tls")
        tokens = self.directory / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(
            "".join(f'{token},{name},{name},"{",".join(self._groups[name])}"\n' for name, token in self._tokens.items())
        )
        return [
            str(server),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--secure-port={self._port}",
            f"--cert-dir={self.directory / 'certs'}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.ca}",
            f"--token-auth-file={tokens}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={signing}",
            "--profiling=false",
            *(self._for_pods(exposure) if exposure else self._alone()),
            *self._options,
        ]

    def _alone(self) -> list[str]:
        return [
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount",  # no one here makes the accounts that pods would need
            "--endpoint-reconciler-type=none",  # the address is loopback, which it would refuse to publish
        ]

    def _for_pods(self, exposure: Exposure) -> list[str]:
        certificate, key = self._authority.issue("kube-apiserver-kubelet-client", organizations=ADMIN_GROUPS)
        return [
            "--bind-address=0.0.0.0",
            f"--advertise-address={exposure.address}",
            "--authorization-mode=Node,RBAC",
            f"--service-cluster-ip-range={exposure.service_range}",
            "--enable-admission-plugins=NodeRestriction",
            "--kubelet-preferred-address-types=InternalIP",  # a node's name means nothing here
            f"--kubelet-client-certificate={certificate}",  # for logs and exec
            f"--kubelet-client-key={key}",
            "--allow-privileged=true",
        ]

    def _is_ready(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.ca))
        request = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {self.token()}"})
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        try:
            with opener.open(request, timeout=limit(5)) as answer:
                return bool(answer.status == 200)
        except OSError:  # URLError and HTTPError are OSErrors
            return False

    def _write_kubeconfig(self, path: Path, user: str, credentials: Mapping[str, str]) -> None:
        cluster = {"server": self.url, "certificate-authority-data": _encoded(self.ca)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": user, "user": dict(credentials)}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": user, "namespace": "default"}}],
            "current-context": "real",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=2) + "\n")


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
