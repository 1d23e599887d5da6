"""Operator configurations of load rebalancing: one store and one profile that every namespace may use."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from bellwether_load.api.job_profile import JobProfile
from bellwether_load.api.load_config import LoadConfig

IMAGE = "bellwether:dev"
WITH_EXECUTORS: dict[str, Any] = {
    "spark": {"enabled": True},
    "load": {
        "stores": {"default": {"namespaces": ["*"], "uri": "/store"}},
        "profiles": {"default": {"type": "SparkOnKubernetes"}},
    },
}
"""Values of the chart with a store, and executors in pods."""


def body(uri: str, *, store: dict[str, Any] | None = None, **profile: Any) -> dict[str, Any]:
    """The content of a configuration file: store ``default`` at that URI, and profile ``default``."""
    everyone = {"namespaces": ["*"]}
    return {
        "stores": {"default": {**everyone, "uri": uri, **(store or {})}},
        "profiles": {"default": {**everyone, "image": IMAGE, **profile}},
    }


def load_config(uri: str, *, store: dict[str, Any] | None = None, **profile: Any) -> LoadConfig:
    """The same, read."""
    return LoadConfig.model_validate(body(uri, store=store, **profile))


def profile(**fields: Any) -> JobProfile:
    """Profile ``default``."""
    return load_config("/store", **fields).profiles["default"]


def options(folder: Path, uri: str, **profile: Any) -> tuple[str, str]:
    """Options of a command that reads such a file, which is written into that folder."""
    path = folder / "load.yaml"
    path.write_text(json.dumps(body(uri, **profile)))
    return "--load-config", str(path)


def of_chart(objects: Iterable[dict[str, Any]]) -> LoadConfig:
    """The configuration that a chart's objects carry. Raises ValueError where there is none."""
    (found,) = [o for o in objects if o["kind"] == "ConfigMap" and o["metadata"]["name"].endswith("-load")]
    return LoadConfig.model_validate(yaml.safe_load(found["data"]["load.yaml"]))


def executor_template(objects: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The pod template of profile ``default`` in a chart's objects."""
    template = of_chart(objects).profiles["default"].executors.pod_template
    assert template is not None
    return template
