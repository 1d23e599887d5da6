"""Images for the node: the two that it needs itself, and any archive that was built.

In: programs, archives. Out: images in containerd. There is no registry: an image is there or it is not, and pods say
``imagePullPolicy: IfNotPresent`` or ``Never``. Called by ``lifecycle`` and by what runs pods.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from node import archives
from node.namespaces import Namespaces
from node.settings import PAUSE_IMAGE
from realparts import cache, gotools
from realparts.toolruns import DownloadFailed

COREDNS_IMAGE = "docker.io/bellwether-node/coredns:1"
PAUSE_SOURCE = Path(__file__).parent / "pause.c"


class ImportFailed(RuntimeError):
    """containerd did not take an archive; the message holds what it said."""


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
    command = namespaces.inside("ctr", "--namespace", "k8s.io", "images", "import", archive.resolve())
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise ImportFailed(f"importing {archive}: {ended.stderr.strip()[-1500:]}")
