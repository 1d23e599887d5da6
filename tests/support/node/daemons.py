"""The node's programs and the order that they start in. In: places, a running API server. Out: processes to start.

Called by the node's first process, inside its namespaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from node import settings
from node.addresses import API_NAMES, API_PORT, API_SERVICE, GATEWAY, NODE, NODE_END, PODS, SERVICES
from node.places import CONTAINERD_SOCKET, Places
from realparts import gotools
from realparts.apiserver import ApiServer, Exposure
from realparts.processes import ManagedProcess

KUBELET = "kubelet"
TOOLS = (gotools.CONTROLLER_MANAGER, gotools.SCHEDULER, gotools.PROXY, gotools.KUBELET)


def api_server(places: Places) -> ApiServer:
    """The API server as pods need it."""
    exposure = Exposure(
        GATEWAY, API_PORT, SERVICES, hosts=(NODE_END, API_SERVICE, *API_NAMES)
    )  # the host sees the link's end alone
    return ApiServer(places.control_plane, exposure=exposure)


def containerd(places: Places, snapshotter: str) -> ManagedProcess:
    """containerd, configured."""
    folder = settings.network_folder(places)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "10-pods.conflist").write_text(settings.pod_network())
    config = places.settings / "containerd.toml"
    config.write_text(settings.containerd(places, snapshotter))
    return _process(places, "containerd", ["containerd", "--config", config])


def containerd_answers() -> bool:
    """Whether its socket is there; clients wait for the rest themselves."""
    return CONTAINERD_SOCKET.exists()


def of_kubernetes(places: Places, api: ApiServer) -> list[ManagedProcess]:
    """Controllers, scheduler, kubelet and proxy, each with rights of its own, as Kubernetes' own roles give them."""
    configuration = places.settings / "kubelet.json"
    configuration.write_text(settings.kubelet(places, api.ca))
    controllers: Sequence[str | Path] = [
        gotools.binary(gotools.CONTROLLER_MANAGER),
        f"--kubeconfig={api.kubeconfig_for('system:kube-controller-manager')}",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={api.signing_key}",
        f"--root-ca-file={api.ca}",
        f"--cluster-cidr={PODS}",
        "--leader-elect=false",
        "--secure-port=0",
    ]
    scheduler: Sequence[str | Path] = [
        gotools.binary(gotools.SCHEDULER),
        f"--kubeconfig={api.kubeconfig_for('system:kube-scheduler')}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
    ]
    kubelet: Sequence[str | Path] = [
        gotools.binary(gotools.KUBELET),
        f"--kubeconfig={api.kubeconfig_for(f'system:node:{NODE}', ['system:nodes'])}",
        f"--config={configuration}",
        f"--root-dir={places.kubelet}",
        f"--hostname-override={NODE}",
        f"--node-ip={GATEWAY}",
    ]
    # 0: the connection table's size and times are the whole machine's.
    tables = ("max-per-core", "min", "tcp-timeout-established", "tcp-timeout-close-wait")
    proxy: Sequence[str | Path] = [
        gotools.binary(gotools.PROXY),
        f"--kubeconfig={api.kubeconfig_for('system:kube-proxy')}",
        "--proxy-mode=iptables",
        f"--cluster-cidr={PODS}",
        f"--hostname-override={NODE}",
        "--oom-score-adj=0",
        *(f"--conntrack-{table}=0" for table in tables),
    ]
    commands = {
        "kube-controller-manager": controllers,
        "kube-scheduler": scheduler,
        KUBELET: kubelet,
        "kube-proxy": proxy,
    }
    return [_process(places, name, command) for name, command in commands.items()]


def _process(places: Places, name: str, command: Sequence[str | Path]) -> ManagedProcess:
    return ManagedProcess(name, command, log=places.logs / f"{name}.log")
