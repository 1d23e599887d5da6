"""Programs that the environment names are preferred to ones that would have to be built or fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from realparts import kubernetes_binaries
from realparts.toolruns import DownloadFailed


def test_kubebuilder_assets_are_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kube-apiserver", "etcd", "kubectl"):
        (tmp_path / name).touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert kubernetes_binaries.kube_apiserver() == tmp_path / "kube-apiserver"
    assert kubernetes_binaries.etcd() == tmp_path / "etcd"
    assert kubernetes_binaries.kubectl() == tmp_path / "kubectl"


def test_assets_without_a_program_leave_the_other_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "kubectl").write_text("#!/bin/sh\n")
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert kubernetes_binaries.kubectl() == tmp_path / "kubectl"


def test_a_missing_etcd_is_named_with_its_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DownloadFailed, match=r"dependency group `parts`.*KUBEBUILDER_ASSETS"):
        kubernetes_binaries.etcd()
