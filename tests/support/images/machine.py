"""What the build needs of this machine: root, a few of Debian's programs, and its way to packages.

In: nothing. Out: MachineLacks with the remedy; or a folder of secrets for buildah: apt's and pip's own settings
(mirror, proxy, certificates) as files that stages see while they run and that no layer keeps. Called by ``base`` and
``building``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from configparser import ConfigParser
from pathlib import Path

from realparts.progress import step

# Where the build's stages find the certificates, see the Dockerfile.
CERTIFICATES = "/run/machine/certificates.pem"

# What a build may need to reach an index. Anything else of pip's settings is this machine's own business.
_PIP_SETTINGS = frozenset(
    {"index-url", "extra-index-url", "trusted-host", "proxy", "client-cert", "timeout", "default-timeout", "retries"}
)
_APT_SETTINGS = ("Acquire::http", "Acquire::https", "Acquire::Check-", "Acquire::Retries")
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class MachineLacks(RuntimeError):
    """This machine cannot build or run images; the message holds what to do."""


def require_root(doing: str) -> None:
    """Raise MachineLacks unless we are root."""
    if os.geteuid() != 0:
        raise MachineLacks(
            f"{doing} needs root: run it as root, or build the Dockerfile with docker or podman (docs/image.md)"
        )


def require_programs(packages: dict[str, str]) -> None:
    """Have these programs (program to Debian package), installing what is missing. Raises MachineLacks."""
    missing = sorted({package for program, package in packages.items() if not shutil.which(program, path=_path())})
    if not missing:
        return
    remedy = f"apt-get install --no-install-recommends {' '.join(missing)}"
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise MachineLacks(f"missing here: {', '.join(missing)}; on Debian, as root: {remedy}")
    with step(f"installing {', '.join(missing)} with apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update"], [*remedy.split(), "--yes"]):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise MachineLacks(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")


def secrets(folder: Path, canary: str) -> dict[str, Path]:
    """Write this machine's settings of apt and pip into ``folder``; id of the secret to its file.

    ``canary`` is a comment in each of them, by which a leak is found.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    pip = _pip_settings()
    found = {"apt.conf": folder / "apt.conf", "pip.conf": folder / "pip.conf"}
    if certificates := _certificates(pip):
        found["certificates.pem"] = folder / "certificates.pem"
        found["certificates.pem"].write_text(f"# {canary}\n{certificates.read_text()}")
    found["apt.conf"].write_text(f"// {canary}\n{_apt_settings(bool(certificates))}")
    written = ConfigParser(interpolation=None)
    written["global"] = {name: value for name, value in pip.items() if name in _PIP_SETTINGS}
    if certificates:
        written["global"]["cert"] = CERTIFICATES
    with found["pip.conf"].open("w") as file:
        file.write(f"# {canary}\n")
        written.write(file)
    return found


def output(*command: str) -> str:
    """What a program prints; nothing when there is no such program or it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def _path() -> str:
    """Debian keeps debootstrap where only root looks."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _pip_settings() -> dict[str, str]:
    """Pip's settings from its files and from the environment, which comes last and wins."""
    found: dict[str, str] = {}
    for line in output("python3", "-m", "pip", "config", "list").splitlines():
        name, separator, value = line.partition("=")
        if separator:
            found[name.rpartition(".")[2]] = value.strip("'\"").replace("\\n", "\n")
    return found


def _certificates(pip: dict[str, str]) -> Path | None:
    """The certificates that this machine trusts in addition, if any."""
    noted: Iterable[str | None] = (pip.get("cert"), *(os.environ.get(name) for name in _CERTIFICATE_VARIABLES))
    return next((Path(path) for path in noted if path and Path(path).is_file()), None)


def _apt_settings(certificates: bool) -> str:
    """How this machine's apt fetches: proxies, time-outs, checks of dates."""
    lines = [line for line in output("apt-config", "dump").splitlines() if line.startswith(_APT_SETTINGS)]
    kept = [line for line in lines if "::CAInfo " not in line and "Auto-Detect" not in line]
    if certificates:
        kept.append(f'Acquire::https::CAInfo "{CERTIFICATES}";')
    return "\n".join([*kept, ""])
