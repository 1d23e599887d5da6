"""``python -m node up | down | status | load ARCHIVE... | restart PROGRAM | build``.

Exit status: 0, or 1 with a sentence that says what is missing or went wrong; ``status`` ends with 3 where no node runs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from node import images, lifecycle, machine, memory
from node.kubectl import KubectlFailed
from node.namespaces import Namespaces
from node.places import places
from realparts.kubernetes_binaries import kubectl
from realparts.processes import StartFailed
from realparts.toolruns import DownloadFailed
from waiting import TooLate

ABSENT = 3
PROBLEMS = (
    machine.NotHere,
    DownloadFailed,
    StartFailed,
    KubectlFailed,
    TooLate,
    lifecycle.NodeFailed,
    images.ImportFailed,
)


def main() -> int:
    """Do the verb; see the module for the exit status."""
    parser = argparse.ArgumentParser(prog="python -m node", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("up", help="bring the node up; one that is up is left as it is")
    verbs.add_parser("down", help="end it and remove everything of it")
    verbs.add_parser("status", help="say whether it is up, and what it takes")
    verbs.add_parser("build", help="fetch and build what it needs, and start nothing")
    load = verbs.add_parser("load", help="give it images to run")
    load.add_argument("archive", nargs="+", type=Path, help="as `buildah push IMAGE docker-archive:FILE` writes it")
    restart = verbs.add_parser("restart", help="restart one of its programs")
    restart.add_argument("program", help="such as kubelet")
    asked = parser.parse_args()
    try:
        match asked.verb:
            case "up":
                lifecycle.up()
                return explain()
            case "down":
                lifecycle.down()
            case "status":
                return status()
            case "build":
                machine.check(places().root)
                lifecycle.build()
            case "load":
                for archive in asked.archive:
                    images.load(lifecycle.running(places()), archive)
            case "restart":
                lifecycle.restart(places(), asked.program)
    except PROBLEMS as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


def explain() -> int:
    """Say how to use it."""
    print(f"""The node is up. To use it:

    export KUBECONFIG={places().kubeconfig}
    {kubectl()} get pods --all-namespaces

Images: python -m node load ARCHIVE.    End it: make cluster-down.""")
    return 0


def status() -> int:
    """Say whether it is up, and how much memory its processes hold."""
    where = places()
    namespaces = Namespaces.read(where.process)
    if namespaces is None or not namespaces.alive:
        print("no node runs here")
        return ABSENT
    ready = "ready for pods" if lifecycle.serves(where) else "not ready"
    held = memory.held(namespaces)
    print(f"the node is {ready}; its processes hold {sum(held.values()) / 2**20:.0f} MiB:")
    for name, size in sorted(held.items(), key=lambda item: -item[1]):
        print(f"{size / 2**20:8.0f} MiB  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
