"""What an image costs: its size, and what its processes take of memory and processor.

In: an image, or a running container. Out: figures, and ``reports/image.json``, one entry a target, which each
measurement completes.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

from images.recipe import ROOT
from images.running import Container
from images.unpacking import Image

REPORT = ROOT / "reports" / "image.json"
_MEBI = 1024 * 1024


def sizes(image: Image) -> dict[str, Any]:
    """Mebibytes unpacked, by layer, and compressed as registries keep them."""
    layers = [round(size / _MEBI, 1) for size in image.layer_bytes()]
    with image.archive.open("rb") as archive:
        command = "nice -n 19 gzip -6 --stdout | wc --bytes"
        packed = subprocess.run(["/bin/sh", "-c", command], stdin=archive, capture_output=True, check=True)
    return {
        "unpacked_mebibytes": round(sum(layers), 1),
        "layers_mebibytes": layers,
        "compressed_mebibytes": round(int(packed.stdout) / _MEBI, 1),
    }


def resident_mebibytes(container: Container) -> float:
    """The proportional resident memory of all its processes (PSS: shared pages counted once), from the kernel."""
    return round(sum(_pss_kibibytes(pid) for pid in container.pids()) / 1024, 1)


def processor_share(container: Container, seconds: float) -> float:
    """The part of one processor that it uses over so many seconds: 0.01 is one hundredth."""
    before, began = _processor_seconds(container), time.monotonic()
    time.sleep(seconds)
    return round((_processor_seconds(container) - before) / (time.monotonic() - began), 4)


def note(target: str, **figures: Any) -> None:
    """Add figures to a target's entry of the report."""
    REPORT.parent.mkdir(exist_ok=True)
    report: dict[str, Any] = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    report["machine"] = {"processors": os.cpu_count(), "kernel": platform.release()}
    report.setdefault("targets", {}).setdefault(target, {}).update(figures)
    REPORT.write_text(json.dumps(report, indent=2, sort_keys=True) + "\n")


def _pss_kibibytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _processor_seconds(container: Container) -> float:
    ticks = 0
    for pid in container.pids():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # utime and stime, proc(5)
    return ticks / os.sysconf("SC_CLK_TCK")
