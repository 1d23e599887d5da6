"""Fetches pinned things with the registries' ordinary clients: pip for packages, Ivy for Kafka's jars.

In: a lock file beside this module (exact versions and sha256). Out: files in the cache, whose sums were checked before
they got there. Ivy comes out of PySpark's source package, so that no Maven is needed. Called by ``jvm``, ``gotools``,
``kafka_jars`` and ``apiserver``.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

from realparts import cache

LOCKS = Path(__file__).parent / "locks"
TOOLS = Path(__file__).parent / "tools"
STANDARD_ERROR = 2  # the descriptor: in a test run sys.stderr may have none
IVY_SUM = "9502aa5aabf0b1484924a13ef4b5d24f121f7f91aab6768f11cc9d0906c0803b"


class DownloadFailed(RuntimeError):
    """Something could not be fetched, or is not what its lock file says."""


def run(*command: str | Path, doing: str) -> None:
    """Run a client whose progress goes to standard error. Raises DownloadFailed when it fails."""
    ended = subprocess.run([str(part) for part in command], stdout=STANDARD_ERROR, check=False)
    if ended.returncode != 0:
        raise DownloadFailed(f"{doing} failed (exit status {ended.returncode}); its output is above")


def pip_download(name: str, destination: Path, *, source: bool = False) -> Path:
    """Download the package that ``locks/NAME.txt`` pins into ``destination`` and return the file."""
    destination.mkdir(parents=True, exist_ok=True)
    form = ["--no-binary", ":all:"] if source else ["--only-binary", ":all:"]
    run(
        *_pip(),
        *("download", "--no-deps", "--require-hashes", *form),
        *("--dest", destination, "--requirement", LOCKS / f"{name}.txt"),
        doing=f"downloading the Python package {name}",
    )
    (found,) = destination.iterdir()
    return found


def unpacked_wheel(name: str) -> Path:
    """The cached, unpacked content of the wheel that ``locks/NAME.txt`` pins."""

    def make(staged: Path) -> None:
        wheel = pip_download(name, staged.parent / "wheel")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(staged)  # noqa: S202 - its sum was checked
            for member in archive.infolist():  # zipfile drops the executable bits
                if mode := member.external_attr >> 16 & 0o777:
                    (staged / member.filename).chmod(mode)

    return cache.once(f"wheels/{name}-{_sum(LOCKS / f'{name}.txt')[:12]}", f"fetching {name}", make)


def ivy_jar() -> Path:
    """The cached Ivy jar, taken out of PySpark's source package (456 MB, not kept)."""

    def make(staged: Path) -> None:
        package = pip_download("pyspark", staged.parent / "sdist", source=True)
        with tarfile.open(package) as archive:
            for member in archive:
                if member.name.rpartition("/")[2].startswith("ivy-") and (content := archive.extractfile(member)):
                    with staged.open("wb") as target:
                        shutil.copyfileobj(content, target)
                    break
            else:
                raise DownloadFailed(f"{package.name} holds no ivy-*.jar")
        check(staged, IVY_SUM)

    return cache.once("ivy/ivy-2.5.3.jar", "fetching Ivy", make)


def ivy_jars(java: Path, name: str, description: Path) -> Path:
    """The cached folder of the jars that an ``ivy.xml`` asks for, exactly those that ``locks/NAME.sha256`` names."""
    lock = LOCKS / f"{name}.sha256"

    def make(staged: Path) -> None:
        run(
            *(java, "-jar", ivy_jar(), "-ivy", description, "-confs", "default"),
            *("-retrieve", f"{staged}/[artifact]-[revision].[ext]", "-cache", staged.parent / "ivy"),
            doing=f"fetching the jars of {name}",
        )
        wanted = {jar: sha256 for sha256, jar in map(str.split, lock.read_text().splitlines())}
        if unlike := set(wanted) ^ {jar.name for jar in staged.iterdir()}:
            raise DownloadFailed(f"{lock.name} and what Ivy resolved differ in: {', '.join(sorted(unlike))}")
        for jar, sha256 in wanted.items():
            check(staged / jar, sha256)

    return cache.once(f"jars/{name}-{_sum(lock)[:12]}", f"fetching the jars of {name}", make)


def check(file: Path, sha256: str) -> None:
    """Raise DownloadFailed unless the file has that sum."""
    if (actual := _sum(file)) != sha256:
        raise DownloadFailed(f"{file.name} has sha256 {actual}, but {sha256} is pinned: it is not what was tried")


def _sum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _pip() -> list[str]:
    """Pip of this interpreter, else of a small environment of its own in the cache."""
    probe = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if probe.returncode == 0:
        return [sys.executable, "-m", "pip"]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    # Made in place, not renamed into place: an environment holds its own path.
    home = cache.root() / f"pip-{version}"
    with cache.lock(home.name):
        if not (home / "complete").exists():
            venv.create(home, with_pip=True, clear=True)
            (home / "complete").touch()
    return [str(home / "bin" / "python"), "-m", "pip"]
