"""A real Helm, by its command line: renders charts, and installs them on a real API server.

In: a chart's folder, values, a kubeconfig. Out: objects, or what Helm said. Every call has caches and settings of its
own, so that no repository or plugin of the person who runs the tests plays a part. Called by the chart's tests.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from realparts import gotools
from waiting import ran

Object = dict[str, Any]


def of(objects: Sequence[Object], kind: str, ending: str = "") -> list[Object]:
    """Rendered objects of a kind, whose names end so."""
    return [o for o in objects if o["kind"] == kind and o["metadata"]["name"].endswith(ending)]


def pods(objects: Sequence[Object]) -> Iterator[tuple[str, Object]]:
    """Every pod spec, with what it is of."""
    for found in objects:
        pod = found if found["kind"] == "Pod" else found.get("spec", {}).get("template")
        if isinstance(pod, dict) and "spec" in pod:
            yield f"{found['kind']} {found['metadata']['name']}", pod["spec"]


class HelmFailed(RuntimeError):
    """Helm ended with an error; the message holds what it printed."""


class Helm:
    """``home`` is a folder for its caches. ``kubeconfig`` is needed for whatever is not ``lint`` or ``template``."""

    def __init__(self, home: Path, kubeconfig: Path | None = None) -> None:
        self._home = home
        self._kubeconfig = kubeconfig
        self._rendered: dict[tuple[object, ...], str] = {}

    def run(self, *arguments: str | Path, timeout_seconds: float = 120) -> str:
        """What it printed. Raises HelmFailed."""
        folders = {f"HELM_{name}_HOME": str(self._home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        environment = {**{k: v for k, v in os.environ.items() if not k.startswith("HELM_")}, **folders}
        if self._kubeconfig is not None:
            environment["KUBECONFIG"] = str(self._kubeconfig)
        ended = ran(
            [gotools.binary(gotools.HELM), *(str(one) for one in arguments)],
            timeout_seconds,
            env={**environment, "HOME": str(self._home)},
        )
        if ended.returncode != 0:
            raise HelmFailed(f"{ended.stderr.strip()}\n{ended.stdout.strip()}".strip())
        return ended.stdout

    def template(
        self,
        chart: Path,
        values: Mapping[str, Any] | Path | None = None,
        *options: str,
        release: str = "bellwether",
        namespace: str = "bellwether",
    ) -> list[Object]:
        """The objects that a chart renders to, hooks included; the same input is rendered once. Raises HelmFailed."""
        text = values.read_text() if isinstance(values, Path) else json.dumps(values, sort_keys=True, default=dict)
        asked = (chart, text, options, release, namespace)
        if asked not in self._rendered:
            given = (*self.given(values), *options)
            said = self.run("template", release, chart, "--namespace", namespace, *given, timeout_seconds=60)
            found = yaml.load_all(said, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            self._rendered[asked] = json.dumps([one for one in found if one])
        objects: list[Object] = json.loads(self._rendered[asked])  # a copy, which may be changed
        return objects

    def given(self, values: Mapping[str, Any] | Path | None) -> Sequence[str]:
        """Options that pass values: a file, or a mapping, which is written to one."""
        if values is None:
            return ()
        if not isinstance(values, Path):
            self._home.mkdir(parents=True, exist_ok=True)
            path = self._home / "values.yaml"
            path.write_text(yaml.safe_dump(dict(values)))
            values = path
        return ("--values", str(values))
