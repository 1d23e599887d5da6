"""Which API and namespace a command talks to: contexts, several files, the pod's ServiceAccount."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bellwether.adapters.kubernetes import kubeconfig
from bellwether.adapters.kubernetes.kubeconfig import api_access
from bellwether.ports.errors import Terminal


@pytest.fixture(autouse=True)
def outside_a_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def written(path: Path, contexts: dict[str, str | None], current: str | None = None) -> Path:
    """A kubeconfig file; each context has a server of its name, and a namespace if one is given."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": one, "cluster": {"server": f"https://{one}.example.com:6443"}} for one in contexts],
        "users": [{"name": "someone", "user": {"token": "some-token"}}],
        "contexts": [
            {"name": one, "context": {"cluster": one, "user": "someone"} | ({"namespace": at} if at else {})}
            for one, at in contexts.items()
        ],
    }
    if current is not None:
        document["current-context"] = current
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_namespace_is_that_of_the_current_context(tmp_path: Path) -> None:
    found = api_access(written(tmp_path / "config", {"east": "kafka", "west": None}, "east"))
    assert (found.configuration.host, found.namespace) == ("https://east.example.com:6443", "kafka")


def test_a_context_without_a_namespace_means_default(tmp_path: Path) -> None:
    found = api_access(written(tmp_path / "config", {"east": "kafka", "west": None}, "east"), "west")
    assert (found.configuration.host, found.namespace) == ("https://west.example.com:6443", "default")


def test_of_several_files_the_first_that_sets_a_value_wins_and_missing_ones_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = written(tmp_path / "first", {"east": "kafka"}, "east")
    second = written(tmp_path / "second", {"east": "other", "west": "streams"}, "west")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{first}:{second}")
    assert api_access().namespace == "kafka"
    assert api_access(context="west").namespace == "streams"


def test_the_file_of_the_home_directory_is_used_last(tmp_path: Path) -> None:
    written(tmp_path / "home" / ".kube" / "config", {"east": "kafka"}, "east")
    assert api_access().namespace == "kafka"


@pytest.mark.parametrize(
    ("current", "context", "said"),
    [
        ("east", "north", "has no context 'north': set --context; there are: east, west"),
        (None, None, "sets no current context: set --context; there are: east, west"),
        ("gone", None, "has no context 'gone': set --context; there are: east, west"),
    ],
)
def test_an_unknown_or_missing_context_is_one_sentence_with_those_that_exist(
    tmp_path: Path, current: str | None, context: str | None, said: str
) -> None:
    path = written(tmp_path / "config", {"west": None, "east": None}, current)
    with pytest.raises(Terminal) as raised:
        api_access(path, context)
    assert str(raised.value) == f"kubeconfig {path} {said}"


@pytest.mark.parametrize(
    "text", ["", "just text", "[1, 2]", "contexts: 3\nclusters: {", "contexts: [{name: a}]\ncurrent-context: a"]
)
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(Terminal, match=str(path)):
        api_access(path)


def test_in_a_pod_the_namespace_is_that_of_the_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = tmp_path / "namespace"
    namespace.write_text("kafka\n")
    monkeypatch.setattr(kubeconfig, "_SERVICE_ACCOUNT_NAMESPACE", namespace)
    monkeypatch.setattr(kubeconfig.config, "load_incluster_config", lambda **_: None)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert api_access().namespace == "kafka"
    monkeypatch.setenv("POD_NAMESPACE", "named")
    assert api_access().namespace == "named"
    assert api_access(written(tmp_path / "config", {"east": "other"}, "east")).namespace == "other"
