"""The node's first process: prepares, starts every program, starts those again that end, buries the dead.

In: ``python -m node.first FOLDER``, started inside the namespaces. Out: files in that folder (``places``):
``ready`` once all runs, a process id for each program. When it ends the kernel ends everything else in here.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from node import daemons, mounts, network
from node.places import Places
from realparts.processes import ManagedProcess
from realparts.progress import say, step

AGAIN_SECONDS = 1.0
CONTAINERD_SECONDS = 60.0


def main() -> None:
    """Bring everything up, then watch over it for ever."""
    places = Places(Path(sys.argv[1]))
    with step("preparing mounts and network"):
        mounts.prepare(places)
        network.prepare_inside()
        snapshotter = mounts.snapshotter(places.containerd / "tried")
    say(f"containers' file systems by {snapshotter}")
    containerd = daemons.containerd(places, snapshotter)
    containerd.start()
    api = daemons.api_server(places)
    api.start()
    containerd.wait_ready(daemons.containerd_answers, CONTAINERD_SECONDS)
    running = [containerd, *daemons.of_kubernetes(places, api)]
    for process in running:
        process.start()
    watched = [*running, *api.processes()]
    note(places, watched)
    places.ready.touch()
    say("every program runs")
    watch(places, watched)


def watch(places: Places, processes: Sequence[ManagedProcess]) -> None:
    """Start again what ended, a second later, as a system's own supervisor would."""
    while True:
        bury(processes)
        ended = [process for process in processes if not process.alive]
        for process in ended:
            say(f"{process.name} ended; starting it again")
            process.start()
        if ended:
            note(places, processes)
        time.sleep(AGAIN_SECONDS)


def bury(processes: Sequence[ManagedProcess]) -> None:
    """Collect processes whose parents are gone: they are process 1's to collect. Our own are left to their owners."""
    own = {process.pid for process in processes}
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in own:
            return  # an owner asks for it in this same round; what lies behind it is buried in the next
        with contextlib.suppress(ChildProcessError):
            os.waitpid(ended.si_pid, 0)


def note(places: Places, processes: Sequence[ManagedProcess]) -> None:
    """Write each program's process id, as it is inside."""
    places.pids.mkdir(exist_ok=True)
    for process in processes:
        (places.pids / process.name).write_text(f"{process.pid}\n")


if __name__ == "__main__":
    main()
