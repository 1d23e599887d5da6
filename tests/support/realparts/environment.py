"""``python -m realparts.environment VENV LOCK``: make the environment, or complete it, from a lock, with plain pip.

In: the folder of the environment and a lock file. Out: everything that the lock names and bellwether itself,
editable, are installed; pip's output is in ``VENV/install.log``. Exit status 1 with one sentence where that fails. It
is run by the Makefile with any Python, so it needs the standard library alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path

from realparts.causes import cause

NOTE_SECONDS = 15.0


class Failed(RuntimeError):
    """The environment could not be made; the message is the sentence to print."""


def make(folder: Path, lock: Path) -> None:
    """Have everything in the environment that the lock names. Raises Failed."""
    python = folder / "bin" / "python"
    unfinished = folder / ".unfinished"  # pip takes a package that it was interrupted at for installed
    if unfinished.exists() or not python.exists():
        say(f"Making {folder} with Python {sys.version.split()[0]}")
        folder.mkdir(exist_ok=True)
        unfinished.touch()
        try:
            venv.create(folder, with_pip=True, clear=True)
        except (subprocess.CalledProcessError, ImportError):
            shutil.rmtree(folder)
            raise Failed("this Python cannot make environments; on Debian: apt install python3-venv") from None
    unfinished.touch()
    count = sum("==" in line for line in lock.read_text().splitlines())
    log = folder / "install.log"
    log.unlink(missing_ok=True)
    say(f"Installing {count} locked packages (pip's output: {log})")
    started = time.monotonic()
    # Python compiles what is imported at its first import, which is a small part of what is installed.
    pip(python, log, ["--no-compile", "--require-hashes", "--requirement", str(lock)], count)
    pip(python, log, ["--no-deps", "--no-build-isolation", "--editable", "."], 0)
    unfinished.unlink()
    say(f"Installed in {time.monotonic() - started:.0f} s")


def pip(python: Path, log: Path, arguments: Sequence[str], count: int) -> None:
    """Run one installation, with a line of progress now and then. Raises Failed."""
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", *arguments]
    with log.open("a") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as running:
        while True:
            try:
                status = running.wait(NOTE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                said = log.read_text(errors="replace")
                collected = said.count("\nCollecting") + said.startswith("Collecting")
                say(
                    "... installing"
                    if "\nInstalling collected" in said
                    else f"... {collected} of {count} packages found"
                )
    if status:
        said = log.read_text(errors="replace")
        errors = [line for line in said.splitlines() if line.startswith("ERROR")]
        raise Failed(
            f"installing the Python packages failed: {cause(said) or ''.join(errors[-1:]) or 'see its output'}"
            f" (pip's output: {log})"
        )


def say(line: str) -> None:
    """Print one line at once."""
    print(f"==> {line}", file=sys.stderr, flush=True)


def main(folder: Path, lock: Path) -> None:
    """Make it under a lock, so that a second run next to the first one waits for it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    parent = os.open(folder.parent, os.O_RDONLY)
    try:
        fcntl.flock(parent, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"another make is installing into {folder}; waiting for it")
        fcntl.flock(parent, fcntl.LOCK_EX)
    make(folder, lock)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except Failed as problem:
        sys.exit(f"error: {problem}")
    except OSError as problem:
        sys.exit(f"error: making {sys.argv[1]} failed: {cause(str(problem)) or problem}")
    except KeyboardInterrupt:
        sys.exit(130)
