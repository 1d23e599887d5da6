"""Brings the node up, takes it down, says how it is. In: nothing. Out: a running node, or none and nothing of it.

``up`` on a running node leaves it as it is; on what is left of a broken one it cleans up first. Called by ``__main__``
and by the tests on a node.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from node import daemons, images, machine, mounts, network
from node.addresses import NODE
from node.kubectl import Kubectl, eventually
from node.namespaces import Namespaces
from node.places import Places, places
from realparts import cache, gotools, kubernetes_binaries
from realparts.progress import say, step
from waiting import TooLate, until

START_SECONDS = 180.0
MANIFESTS = Path(__file__).parent / "manifests"


class NodeFailed(RuntimeError):
    """The node did not come up; the message holds the end of its log."""


def up() -> Places:
    """Bring the node up, with its name server, until pods can run. Raises NotHere, DownloadFailed, NodeFailed."""
    where = places()
    machine.check(where.root)
    build()
    with cache.lock("node"):
        if serves(where):
            say(f"the node is up already; its kubeconfig: {where.kubeconfig}")
            return where
        remove(where)
        try:
            with step("starting a Kubernetes node"):
                start(where)
        except BaseException:
            say(f"it did not come up; the logs stay in {where.logs} until the next start")
            end(where)
            raise
    return where


def down() -> None:
    """End the node and remove everything of it. Without a node it does nothing."""
    where = places()
    with cache.lock("node"):
        remove(where)


def build() -> None:
    """Have every program and both images ready in the cache."""
    kubernetes_binaries.etcd()
    kubernetes_binaries.kube_apiserver()
    kubernetes_binaries.kubectl()
    for tool in daemons.TOOLS:
        gotools.binary(tool)
    images.pause()
    images.coredns()


def serves(where: Places) -> bool:
    """Whether the node is up, all its programs having run, and answers that it is ready for pods."""
    held = Namespaces.read(where.process)
    if held is None or not held.alive or not where.ready.exists():
        return False
    return Kubectl(where.kubeconfig).ready("node", NODE)


def start(where: Places) -> None:
    """Start all of it where nothing is."""
    for folder in (where.logs, where.settings):
        folder.mkdir(parents=True)
    held = Namespaces.start([sys.executable, "-m", "node.first", where.root], where.first_log)
    held.write(where.process)
    network_of_its_own(held)
    network.join(held.pid)
    follow(where, held)
    images.load(held, images.pause())
    images.load(held, images.coredns())
    kubectl = Kubectl(where.kubeconfig)
    kubectl("apply", "--server-side", "-f", str(MANIFESTS))
    eventually(lambda: kubectl.ready("node", NODE), bool, 60, "the node is not ready for pods")
    kubectl("rollout", "status", "deployment/coredns", "--namespace", "kube-system", "--timeout", "90s")


def running(where: Places) -> Namespaces:
    """The node's namespaces. Raises NodeFailed where no node runs."""
    found = Namespaces.read(where.process)
    if found is None or not found.alive:
        raise NodeFailed("no node runs here; start one: make cluster")
    return found


def restart(where: Places, program: str) -> None:
    """End one of the node's programs as its supervisor would (SIGTERM) and wait until it runs again."""
    inside = running(where)
    note = where.pids / program
    before = note.read_text()
    subprocess.run(inside.inside("kill", before.strip()), check=True, capture_output=True)
    eventually(note.read_text, lambda now: now not in ("", before), 60, f"{program} was not started again")


def network_of_its_own(held: Namespaces) -> None:
    """Wait until the process has left the host's network."""
    host = Path("/proc/self/ns/net").readlink()
    try:
        until(lambda: Path(f"/proc/{held.pid}/ns/net").readlink() != host, 10, alive=lambda: held.alive)
    except TooLate as late:
        raise NodeFailed("unshare made no namespaces; does this machine allow them?") from late


def follow(where: Places, held: Namespaces) -> None:
    """Repeat what the first process says, until every program runs."""
    seen = 0

    def ready() -> bool:
        nonlocal seen
        found = where.ready.exists()
        lines = where.first_log.read_text(errors="replace").splitlines()
        for line in lines[seen:]:
            print(line, file=sys.stderr, flush=True)
        seen = len(lines)
        return found

    try:
        until(ready, START_SECONDS, every=0.1, alive=lambda: held.alive)
    except TooLate as late:
        raise NodeFailed("the node did not come up; see above") from late


def remove(where: Places) -> None:
    """End whatever of it runs, and remove all of it, its files too."""
    if not where.root.exists():
        return
    with step("removing the node"):
        end(where)
        shutil.rmtree(where.root)


def end(where: Places) -> None:
    """End whatever of it runs, and remove its link and its control groups; files stay."""
    if held := Namespaces.read(where.process):
        held.end()
    network.leave()
    mounts.remove_cgroups()
