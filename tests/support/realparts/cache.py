"""One folder outside the repository where downloads and builds are kept, safe for several processes at once.

In: a name and a way to make it. Out: its path, complete or not there at all: things are made next to their place and
renamed into it, under a lock that dies with its holder. Called by everything here that downloads or builds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from realparts.progress import say, step


def root() -> Path:
    """The cache's folder: ``$BELLWETHER_CACHE``, else ``$XDG_CACHE_HOME/bellwether``, else ``~/.cache/bellwether``."""
    if chosen := os.environ.get("BELLWETHER_CACHE"):
        folder = Path(chosen)
    elif shared := os.environ.get("XDG_CACHE_HOME"):
        folder = Path(shared) / "bellwether"
    else:
        folder = Path.home() / ".cache" / "bellwether"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the cache's lock of that name; other processes and threads wait. It is freed when its holder dies."""
    path = root() / "locks" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run, which is making {name}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def once(relative: str, title: str, make: Callable[[Path], None]) -> Path:
    """Return the cached file or folder at ``relative``, making it first if it is not there.

    ``make`` gets a path that does not exist yet and must put a file or a folder there. If it raises, nothing is kept.
    """
    place = root() / relative
    if place.exists():
        return place
    with lock(relative.replace("/", "-")):
        if place.exists():  # another process made it while we waited
            return place
        place.parent.mkdir(parents=True, exist_ok=True)
        with scratch() as folder, step(title):
            staged = folder / place.name
            make(staged)
            staged.rename(place)
    return place


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder in the cache's own file system, so that a rename out of it is atomic; removed at the end."""
    parent = root() / "scratch"
    parent.mkdir(exist_ok=True)
    with lock("scratch"):
        folder = Path(tempfile.mkdtemp(dir=parent))
        held = os.open(folder, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def clear_scratch() -> None:
    """Remove what processes have left in the scratch folder that were killed at their work."""
    with lock("scratch"):
        for folder in (root() / "scratch").glob("*"):
            held = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            except BlockingIOError:
                pass  # its owner is at work
            finally:
                os.close(held)
