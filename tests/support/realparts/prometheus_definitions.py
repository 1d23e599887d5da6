"""The real definitions of ServiceMonitor, PodMonitor and PrometheusRule, out of Prometheus' operator's Go module.

In: nothing. Out: a folder in the cache with their manifests. Called by the chart's tests; Go's own client fetches the
module, and its sum is compared with the one pinned here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from realparts import cache, gotools
from realparts.toolruns import DownloadFailed

MODULE = "github.com/prometheus-operator/prometheus-operator"
VERSION = "v0.85.0"
SUM = "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="
KINDS = ("podmonitors", "prometheusrules", "servicemonitors")


def folder() -> Path:
    """The manifests. Raises DownloadFailed."""

    def make(staged: Path) -> None:
        command = [str(gotools.go()), "mod", "download", "-json", f"{MODULE}@{VERSION}"]
        ended = subprocess.run(command, cwd=staged.parent, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise DownloadFailed(f"downloading {MODULE} failed: {ended.stderr.strip() or ended.stdout.strip()}")
        noted = json.loads(ended.stdout)
        if noted["Sum"] != SUM:
            raise DownloadFailed(f"{MODULE}@{VERSION} has the sum {noted['Sum']}, not {SUM}")
        staged.mkdir()
        for kind in KINDS:
            name = f"monitoring.coreos.com_{kind}.yaml"
            shutil.copyfile(Path(noted["Dir"]) / "example" / "prometheus-operator-crd" / name, staged / name)

    return cache.once(f"definitions/prometheus-operator-{VERSION}", f"downloading {MODULE}", make)
