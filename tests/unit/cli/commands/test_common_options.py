from pathlib import Path

import pytest

from bellwether.cli.commands.common_options import context_namespace

CONTEXTS = """
contexts:
- {name: prod, context: {cluster: a, user: b, namespace: kafka}}
- {name: bare, context: {cluster: a, user: b}}
"""


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "namespace"),
    [
        pytest.param(f"current-context: prod\n{CONTEXTS}", "kafka", id="the context has one"),
        pytest.param(f"current-context: bare\n{CONTEXTS}", "default", id="the context has none"),
        pytest.param(CONTEXTS, "default", id="no current context"),
        pytest.param("contexts: 7\n", "default", id="not a kubeconfig"),
        pytest.param("{", "default", id="not YAML"),
        pytest.param("", "default", id="empty"),
    ],
)
def test_the_namespace_is_that_of_the_current_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, namespace: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", written(tmp_path / "config", text))

    assert context_namespace() == namespace


def test_of_several_files_the_first_that_names_a_context_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [
        written(tmp_path / "contexts", CONTEXTS),
        str(tmp_path / "missing"),
        written(tmp_path / "current", "current-context: prod\n"),
        written(tmp_path / "later", "current-context: bare\n"),
    ]
    monkeypatch.setenv("KUBECONFIG", ":".join(files))

    assert context_namespace() == "kafka"
