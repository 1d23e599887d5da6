"""``bellwether lint`` in GitOps repositories: Helm values inside other objects, Kustomize patches, several clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from bellwether.cli.main import main
from bellwether.cli.policies import gitops_files

POLICY = """\
apiVersion: bellwether.dev/v1alpha1
kind: LeadershipPolicy
metadata: {name: main, namespace: kafka}
spec:
  mode: Observe
  kafka: {bootstrapServers: ["kafka:9092"]}
"""
PATCH = """\
apiVersion: bellwether.dev/v1alpha1
kind: LeadershipPolicy
metadata: {name: main}
spec: {mode: Enforce}
"""
WRONG = """\
policies:
- name: main
  spec:
    mode: Enforc
    kafka: {bootstrapServers: ["kafka:9092"]}
    promotion: {stabilisationSeconds: 5}
"""


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    gitops_files._patches.cache_clear()
    yield
    gitops_files._patches.cache_clear()


def written(folder: Path, files: dict[str, str]) -> str:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return str(folder)


def problems(folder: Path, **files: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, ["lint", written(folder, files), "-o", "json"])
    found: list[dict[str, Any]] = json.loads(done.stdout)["problems"]
    return found


def inside(*keys: str, text: str = WRONG) -> str:
    """Values of the chart below some keys."""
    value = yaml.safe_load(text)
    for key in reversed(keys):
        value = {key: value}
    return yaml.safe_dump(value, sort_keys=False)


def release(**spec: Any) -> str:
    chart = {"spec": {"chart": "bellwether"}}
    head = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "bellwether"}}
    return yaml.safe_dump({**head, "spec": {"chart": chart, **spec}}, sort_keys=False)


def application(**helm: Any) -> str:
    source = {"chart": "bellwether", "helm": helm}
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "bellwether"}}
    return yaml.safe_dump({**head, "spec": {"source": source}}, sort_keys=False)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(WRONG, id="values"),
        pytest.param(inside("bellwether"), id="values of an umbrella chart"),
        pytest.param(release(values=yaml.safe_load(WRONG)), id="HelmRelease"),
        pytest.param(release(values={"bellwether": yaml.safe_load(WRONG)}), id="HelmRelease of an umbrella chart"),
        pytest.param(application(valuesObject=yaml.safe_load(WRONG)), id="Application"),
        pytest.param(
            application(valuesObject=yaml.safe_load(WRONG)).replace("source:", "sources:\n  -", 1), id="sources"
        ),
    ],
)
def test_policies_in_values_are_checked_wherever_a_repository_keeps_them(tmp_path: Path, text: str):
    found = problems(tmp_path, **{"file.yaml": text})
    lines = text.splitlines()
    assert [(p["severity"], p["field"]) for p in found] == [
        ("error", "spec.mode"),
        ("error", "spec.promotion.stabilisationSeconds"),
    ]
    assert ["mode: Enforc" in lines[found[0]["line"] - 1], "stabilisation" in lines[found[1]["line"] - 1]] == [True] * 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (release(valuesFrom=[{"kind": "ConfigMap", "name": "v"}]), "not checked: values of a ConfigMap or Secret"),
        (application(values=WRONG), "not checked: values, use valuesObject"),
        (application(parameters=[{"name": "policies[0].name"}]), "not checked: parameters, use valuesObject"),
        (
            yaml.safe_dump({"kind": "ApplicationSet", "spec": {"template": yaml.safe_load(application())}}),
            "not checked: a template of Applications",
        ),
        (
            yaml.safe_dump({"patches": [{"patch": PATCH}]}),
            "not checked: a patch inside a kustomization, write it to a file of its own",
        ),
    ],
    ids=["valuesFrom", "values as text", "parameters", "ApplicationSet", "inline patch"],
)
def test_what_is_not_checked_is_said_and_counted_and_fails_nothing(tmp_path: Path, text: str, said: str):
    written(tmp_path, {"kustomization.yaml": text})
    done = CliRunner().invoke(main, ["lint", str(tmp_path), "--strict"])
    assert done.exit_code == 0
    assert f": note: {said} [unchecked]" in done.stdout
    assert done.stdout.endswith("1 file, 0 errors, 0 warnings, 1 not checked\n")


def test_other_charts_and_applications_are_left_alone(tmp_path: Path):
    other = release(valuesFrom=[{"kind": "ConfigMap", "name": "v"}]).replace("bellwether", "kyverno")
    assert (
        problems(tmp_path, **{"a.yaml": other, "b.yaml": "kind: Application\nspec: {source: x, sources: {}}\n"}) == []
    )


@pytest.mark.parametrize("helm", ["xx", "[values, parameters]", "3"])
def test_an_application_of_odd_form_has_no_values(tmp_path: Path, helm: str):
    text = f"kind: Application\nspec: {{source: {{chart: bellwether, helm: {helm}}}}}\n"
    assert problems(tmp_path, **{"a.yaml": text}) == []


@pytest.mark.parametrize("field", ['patches: [{path: "a\\0b"}]\n', 'patchesStrategicMerge: ["a\\0b"]\n'])
def test_a_patch_with_an_impossible_file_name_is_ignored(tmp_path: Path, field: str):
    assert problems(tmp_path, **{"kustomization.yaml": field, "policy.yaml": POLICY}) == []


def test_a_patch_behind_circular_links_is_ignored(tmp_path: Path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert problems(tmp_path, **{"kustomization.yaml": "patches: [{path: a}]\n", "policy.yaml": POLICY}) == []


@pytest.mark.parametrize("field", ["patches:\n- path: %s\n", "patchesStrategicMerge: [%s]\n"])
@pytest.mark.parametrize("name", ["enforce.yaml", "patches/enforce.yaml"])
def test_of_a_kustomize_patch_only_the_fields_that_are_there_are_checked(tmp_path: Path, field: str, name: str):
    base = {"base/policy.yaml": POLICY, "overlays/prod/kustomization.yaml": field % name}
    assert problems(tmp_path, **base, **{f"overlays/prod/{name}": PATCH}) == []
    wrong = PATCH.replace("{mode: Enforce}", "{mode: Enforc, $patch: merge, kafka: {tls: {caSecret: x}}}")
    found = problems(tmp_path, **{f"overlays/prod/{name}": wrong})
    assert [p["field"] for p in found] == ["spec.mode", "spec.kafka.tls.caSecret"]


def test_a_policy_that_no_kustomization_patches_is_checked_as_a_whole(tmp_path: Path):
    found = problems(tmp_path, **{"kustomization.yaml": "resources: [enforce.yaml]\n", "enforce.yaml": PATCH})
    assert [p["field"] for p in found] == ["spec.kafka"]
    found = problems(tmp_path, **{"kustomization.yaml": "a: [\n", "enforce.yaml": PATCH})
    assert [p["rule"] for p in found] == ["schema", "yaml"]


@pytest.mark.parametrize("name", ["main", "orders-prod"])
def test_two_neighbouring_folders_are_two_clusters(tmp_path: Path, name: str):
    other = POLICY.replace("name: main", f"name: {name}")
    assert problems(tmp_path, **{"clusters/staging/policy.yaml": POLICY, "clusters/prod/policy.yaml": other}) == []
    assert len(problems(tmp_path, **{"clusters/policy.yaml": POLICY.replace("main", "third")})) == 2, "above both"


def test_secrets_and_probers_of_another_cluster_are_not_missed(tmp_path: Path):
    policy = POLICY.replace("]}", "], tls: {caSecretName: ca}}") + (
        "  detection: {externalReachability: {vantages: [a]}}\n"
    )
    staging = {
        "staging/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: other, namespace: kafka}\n",
        "staging/values.yaml": "probers: [{kind: Reachability, vantage: b}]\nrbac: {secretNames: [other]}\n",
    }
    assert problems(tmp_path, **staging, **{"prod/policy.yaml": policy}) == []
    assert len(problems(tmp_path, **{"staging/policy.yaml": policy})) == 3
