"""Images for the node: the two that it needs itself, any archive that was built, and a registry to pull others from.

In: programs, archives. Out: images in containerd. Without a registry an image is there or it is not, and pods say
``imagePullPolicy: IfNotPresent`` or ``Never``. Called by ``lifecycle`` and by what runs pods.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from node import archives
from node.namespaces import Namespaces
from node.places import Places
from node.settings import PAUSE_IMAGE, registries
from realparts import cache, gotools
from realparts.toolruns import DownloadFailed

COREDNS_IMAGE = "docker.io/bellwether-node/coredns:1"
PAUSE_SOURCE = Path(__file__).parent / "pause.c"


class ImportFailed(RuntimeError):
    """containerd refused what it was asked; the message holds what it said."""


def pause() -> Path:
    """The archive of the image that holds each pod's namespaces."""
    version = hashlib.sha256(PAUSE_SOURCE.read_bytes()).hexdigest()[:12]

    def make(staged: Path) -> None:
        program = staged.parent / "pause"
        command = ["cc", "-Os", "-static", "-s", "-o", str(program), str(PAUSE_SOURCE)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise DownloadFailed(f"compiling {PAUSE_SOURCE.name} failed:\n{ended.stderr}")
        archives.of_program(PAUSE_IMAGE, program, staged)

    return cache.once(f"images/pause-{version}.tar", "making the image of a pod's first container", make)


def coredns() -> Path:
    """The archive of the image of the cluster's name server."""
    built = gotools.binary(gotools.COREDNS)

    def make(staged: Path) -> None:
        program = staged.parent / "coredns"
        shutil.copy(built, program)
        archives.of_program(COREDNS_IMAGE, program, staged)

    return cache.once(f"images/{built.name}.tar", "making the image of the name server", make)


def load(namespaces: Namespaces, archive: Path) -> None:
    """Give containerd an archive, as ``buildah push docker-archive:`` writes it. Raises ImportFailed."""
    _ctr(namespaces, "import", str(archive.resolve()))


def mirror(where: Places, namespaces: Namespaces, registry: str, address: str) -> None:
    """Let containerd pull what that registry has from the one at this address of the host, which has no TLS.

    What it pulled before is forgotten: another build may have the same tag. Raises ImportFailed.
    """
    folder = registries(where) / registry
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts.toml").write_text(f'[host."http://{address}"]\ncapabilities = ["pull", "resolve"]\n')
    if pulled := [name for name in _ctr(namespaces, "ls", "--quiet").split() if name.startswith(f"{registry}/")]:
        _ctr(namespaces, "rm", *pulled)


def _ctr(namespaces: Namespaces, *arguments: str) -> str:
    command = namespaces.inside("ctr", "--namespace", "k8s.io", "images", *arguments)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise ImportFailed(f"ctr images {' '.join(arguments)}: {ended.stderr.strip()[-1500:]}")
    return ended.stdout
