"""A real block device that the kernel throttles: a loop device with ext4, and the block controller of cgroup v1.

In: a file's place and a size. Out: a mounted folder whose writes and syncs take what the kernel lets through; page
cache, journal and writeback are the kernel's own. It needs root; ``unavailable`` says what is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

BLKIO = Path("/sys/fs/cgroup/blkio")
MEGABYTE = 1024 * 1024
LIMITS = ("write_bps", "write_iops", "read_bps", "read_iops")


def unavailable() -> str:
    """Why a device cannot be throttled here; empty if it can."""
    if os.geteuid() != 0:
        return "it takes root"
    if not (BLKIO / "blkio.throttle.write_bps_device").exists():
        return "the kernel has no block controller of cgroup v1"
    missing = [tool for tool in ("losetup", "mkfs.ext4", "mount") if shutil.which(tool) is None]
    return f"{', '.join(missing)} not found" if missing else ""


class ThrottledDisk:
    """A context manager: mounted on entry, gone on exit."""

    def __init__(self, place: Path, megabytes: int = 1024) -> None:
        """``place`` is a new folder that gets the device's file and the mounted folder ``directory``."""
        self._image = place / "disk.img"
        self._megabytes = megabytes
        self._device = ""
        self.directory = place / "disk"

    def __enter__(self) -> ThrottledDisk:
        self.directory.mkdir(parents=True)
        with self._image.open("wb") as image:
            image.truncate(self._megabytes * MEGABYTE)
        self._device = _run("losetup", "--find", "--show", self._image).strip()
        try:
            _run("mkfs.ext4", "-q", self._device)
            _run("mount", self._device, self.directory)
        except subprocess.CalledProcessError:
            _run("losetup", "--detach", self._device)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.throttle({})
        self.bound(None)
        _run("umount", "--lazy", self.directory)
        _run("losetup", "--detach", self._device)
        self._image.unlink()

    def throttle(self, limits: Mapping[str, int]) -> None:
        """Let so many bytes or requests a second through, by ``LIMITS``; what is not named is not limited."""
        for name in LIMITS:
            (BLKIO / f"blkio.throttle.{name}_device").write_text(f"{self._number} {limits.get(name, 0)}")

    def bound(self, megabytes: int | None) -> None:
        """Bound the dirty pages of the device, so that who writes waits for it soon; None for the kernel's default."""
        backing = Path("/sys/class/bdi") / self._number
        if backing.exists():
            (backing / "strict_limit").write_text("0" if megabytes is None else "1")
            if megabytes is None:
                (backing / "max_ratio").write_text("100")
            else:
                (backing / "max_bytes").write_text(str(megabytes * MEGABYTE))

    @property
    def _number(self) -> str:
        """Major and minor number."""
        made = Path(self._device).stat().st_rdev
        return f"{os.major(made)}:{os.minor(made)}"


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
