"""The base image where no registry can be reached: a minimal Debian, made with debootstrap.

In: nothing. Out: a rootfs archive in the cache, named after the release and the recipe, that ``building`` imports as
``BASE_IMAGE``. Packages come from where this machine's apt gets its own, else from debootstrap's default mirror.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from images import machine
from realparts import cache

RELEASE = "trixie"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# debootstrap prepares the release alone; updates are listed next to it, as in the public base image.
_RECIPE = "minbase, updates, security; 1"


def version() -> str:
    """Names the base's content: its release, its recipe and the mirrors of this machine."""
    noted = "\n".join([RELEASE, _RECIPE, _mirror(), _security_mirror()])
    return f"{RELEASE}-{hashlib.sha256(noted.encode()).hexdigest()[:12]}"


def archive() -> Path:
    """The cached root file system as a tar archive. Raises MachineLacks."""

    def make(staged: Path) -> None:
        machine.require_root("making a base image with debootstrap")
        machine.require_programs({"debootstrap": "debootstrap"})
        tree = staged.parent / "tree"
        mirror = _mirror()
        keyring = [f"--keyring={_KEYRING}"] if Path(_KEYRING).exists() else []
        _run("debootstrap", "--variant=minbase", *keyring, RELEASE, str(tree), *([mirror] if mirror else []))
        (tree / "etc/apt/sources.list").write_text(sources((tree / "etc/apt/sources.list").read_text()))
        for spent in (
            *(tree / "var/cache/apt/archives").glob("*.deb"),
            *(tree / "var/lib/apt/lists").glob("*Packages"),
        ):
            spent.unlink()
        _run("tar", "--create", "--file", str(staged), "--directory", str(tree), "--one-file-system", ".")
        shutil.rmtree(tree)

    return cache.once(f"images/base/{version()}.tar", f"making a Debian {RELEASE} base with debootstrap", make)


def sources(main: str) -> str:
    """apt's list of sources: the release, its updates, and security where the mirror is known."""
    deb, uri, _suite, *components = main.split()
    lines = [" ".join([deb, uri, suite, *components]) for suite in (RELEASE, f"{RELEASE}-updates")]
    if security := _security_mirror():
        lines.append(f"deb {security} {RELEASE}-security main")
    return "\n".join([*lines, ""])


def _mirror() -> str:
    """Where this machine gets Debian's packages from; nothing where it runs no Debian."""
    return _origin("Debian")


def _security_mirror() -> str:
    return _origin("Debian-Security")


def _origin(label: str) -> str:
    listed = machine.output("apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages")
    found = [uri for name, _, uri in (line.partition(" ") for line in listed.splitlines()) if name == label]
    return min(found, default="")


def _run(*command: str) -> None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})
    if done.returncode != 0:
        raise machine.MachineLacks(f"{command[0]} failed:\n{(done.stdout + done.stderr)[-2000:]}")
