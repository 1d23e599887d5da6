"""Runs an unpacked image with runc: its own user, a read-only root, no capability, as under Pod Security `restricted`.

In: an image, its root file system, arguments. Out: a ``Container`` whose output is in a log file. It has namespaces of
its own but for the network: real parts listen on 127.0.0.1. Needs root and Debian's runc.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from images import machine
from images.unpacking import Image
from waiting import limit

_READ_ONLY = ["ro", "nosuid", "nodev", "noexec"]
_DEVICES = ["nosuid", "strictatime", "mode=755", "size=65536k"]


@dataclass(frozen=True, slots=True)
class Unpacked:
    """An image and where its files lie."""

    image: Image
    root: Path


@dataclass(frozen=True, slots=True)
class Room:
    """What a container gets next to its image."""

    environment: Mapping[str, str] = field(default_factory=dict)
    shown: Mapping[str, Path] = field(default_factory=dict)
    """Folders of this machine that it may read, by the path that it sees."""
    given: Mapping[str, Path] = field(default_factory=dict)
    """Folders of this machine that it may write to."""
    entrypoint: Sequence[str] | None = None
    """Instead of the image's own."""


class Container:
    """One container; a context manager that removes it."""

    def __init__(self, unpacked: Unpacked, arguments: Sequence[str], folder: Path, room: Room | None = None) -> None:
        """Lay its bundle out in ``folder``; nothing runs yet."""
        machine.require_root("running a container with runc")
        machine.require_programs({"runc": "runc"})
        self._unpacked = unpacked
        self._room = room or Room()
        self.name = f"bellwether-{uuid.uuid4().hex[:12]}"
        self._runtime = ["runc", "--root", str(folder / "state")]
        bundle = folder / self.name
        bundle.mkdir(parents=True)
        (bundle / "config.json").write_text(json.dumps(self._settings(arguments), indent=1))
        self._command = [*self._runtime, "run", "--bundle", str(bundle), self.name]
        self._log = folder / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Container:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running:
            with contextlib.suppress(subprocess.CalledProcessError):  # it has ended just now
                self._runc("kill", self.name, "KILL")
        self._started.wait(limit(30))
        with contextlib.suppress(subprocess.CalledProcessError):  # a container that ended is gone already
            self._runc("delete", "--force", self.name)

    @property
    def running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def wait(self, seconds: float) -> int:
        """Wait for its end; its exit status. Raises subprocess.TimeoutExpired."""
        return self._started.wait(limit(seconds))

    def terminate(self) -> None:
        """Send SIGTERM to its process 1, as a kubelet does."""
        self._runc("kill", self.name, "TERM")

    def said(self) -> str:
        """All that it wrote."""
        return self._log.read_text(errors="replace")

    def pids(self) -> list[int]:
        """Its processes, by this machine's ids, process 1 first."""
        listed = json.loads(self._runc("ps", "--format", "json", self.name))
        return sorted(int(pid) for pid in listed or [])

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the container was never started")
        return self._process

    def _runc(self, verb: str, *arguments: str) -> str:
        return subprocess.run([*self._runtime, verb, *arguments], capture_output=True, text=True, check=True).stdout

    def _settings(self, arguments: Sequence[str]) -> dict[str, Any]:
        """The bundle's config.json (OCI runtime specification 1.0)."""
        image, room = self._unpacked.image, self._room
        uid, gid = image.user
        variables = {**image.environment, **room.environment}
        entrypoint = image.command if room.entrypoint is None else list(room.entrypoint)
        none: list[str] = []
        kinds = ("bounding", "effective", "inheritable", "permitted", "ambient")
        return {
            "ociVersion": "1.0.2",
            "hostname": self.name,
            "root": {"path": str(self._unpacked.root), "readonly": True},
            "process": {
                "terminal": False,
                "user": {"uid": uid, "gid": gid},
                "args": [*entrypoint, *arguments],
                "env": [f"{name}={value}" for name, value in variables.items()],
                "cwd": image.settings["config"].get("WorkingDir") or "/",
                "capabilities": dict.fromkeys(kinds, none),
                "noNewPrivileges": True,
            },
            "mounts": self._mounts(),
            "linux": {
                "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")],
                "resources": {"devices": [{"allow": False, "access": "rwm"}]},
                "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
                "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
            },
        }

    def _mounts(self) -> list[dict[str, Any]]:
        def mount(kind: str, destination: str, options: list[str]) -> dict[str, Any]:
            return {"destination": destination, "type": kind, "source": kind, "options": options}

        def bind(source: Path, destination: str, options: list[str]) -> dict[str, Any]:
            return {"destination": destination, "type": "bind", "source": str(source), "options": ["rbind", *options]}

        files = [Path("/etc/hosts"), Path("/etc/resolv.conf")]
        return [
            mount("proc", "/proc", []),
            mount("tmpfs", "/dev", _DEVICES),
            mount("tmpfs", "/tmp", ["nosuid", "nodev", "mode=1777"]),
            mount("sysfs", "/sys", _READ_ONLY),
            *(bind(file, str(file), ["ro"]) for file in files if file.exists()),
            *(bind(source, path, ["ro"]) for path, source in self._room.shown.items()),
            *(bind(source, path, ["rw"]) for path, source in self._room.given.items()),
        ]
