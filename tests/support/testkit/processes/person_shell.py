"""What a person types: commands of kubectl and the CLI against the API server of a site, and how they ended.

In: the API server, a directory for kubectl's cache, a command. Out: ``Ended``. Called by the scenes of the alerts and
by the installation that the runbooks are followed on.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from realparts.apiserver import ApiServer
from waiting import ran


class Ended(NamedTuple):
    """A command that has ended."""

    status: int
    printed: str
    errors: str


def environment(server: ApiServer, directory: Path, user: str | None = None) -> dict[str, str]:
    """Variables of the shell of an administrator, or of ``user``."""
    kubeconfig = server.kubeconfig if user is None else server.kubeconfig_for(user)
    return {**os.environ, "KUBECONFIG": str(kubeconfig), "KUBECACHEDIR": str(directory / "kubectl-cache")}


def run(command: Sequence[str], variables: Mapping[str, str], directory: Path | None = None) -> Ended:
    """Run a command to its end, without input. Raises subprocess.TimeoutExpired."""
    done = ran(command, 180, env=variables, cwd=directory, stdin=subprocess.DEVNULL)
    return Ended(done.returncode, done.stdout, done.stderr)
