"""``bellwether lint`` in GitOps repositories: Helm values inside other objects, Kustomize patches, several clusters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from bellwether.cli.main import main

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


def nested(head: str, *keys: str | int, leaf: Any) -> str:
    """A YAML document with ``head`` and, at the place of the keys, the leaf; the first key is next to it."""
    for key in reversed(keys):
        leaf = [leaf] if isinstance(key, int) else {key: leaf}
    return yaml.dump({**yaml.safe_load(head), **leaf}, Dumper=_Literal, sort_keys=False)


class _Literal(yaml.SafeDumper):
    """Writes texts of several lines as people do."""


_Literal.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)
VALUES = yaml.safe_load(WRONG)
OBJECT = {
    "apiVersion": "bellwether.dev/v1alpha1",
    "kind": "LeadershipPolicy",
    "metadata": {"name": "main"},
    "spec": VALUES["policies"][0]["spec"],
}
OBJECT_TEXT = yaml.safe_dump(OBJECT, sort_keys=False, default_flow_style=False)
SHAPES = {
    "values": WRONG,
    "values of an umbrella chart": inside("bellwether"),
    "values of an umbrella chart with an alias": inside("leaders"),
    "values of an umbrella in an umbrella": inside("platform", "bellwether"),
    "HelmRelease": release(values=VALUES),
    "HelmRelease of an umbrella chart": release(values={"bellwether": VALUES}),
    "Application": application(valuesObject=VALUES),
    "Application, sources": application(valuesObject=VALUES).replace("source:", "sources:\n  -", 1),
    "Application, values as text": nested("kind: Application", "spec", "source", "helm", "values", leaf=WRONG),
    "ApplicationSet": nested(
        "kind: ApplicationSet", "spec", "template", "spec", "sources", 0, "helm", "valuesObject", leaf=VALUES
    ),
    "ConfigMap of values": nested("{apiVersion: v1, kind: ConfigMap}", "data", "values.yaml", leaf="\n\n" + WRONG),
    "ConfigMap of manifests": nested("{apiVersion: v1, kind: ConfigMap}", "data", "all", leaf=OBJECT_TEXT),
    "K3s HelmChart": nested("kind: HelmChart", "spec", "valuesContent", leaf=WRONG),
    "Kustomize helmCharts": nested("kind: Kustomization", "helmCharts", 0, "valuesInline", leaf=VALUES),
    "Fleet": nested("namespace: kafka", "helm", "values", leaf=VALUES),
    "Helmfile": nested("{}", "releases", 0, "values", 0, leaf=VALUES),
    "Crossplane Release": nested("kind: Release", "spec", "forProvider", "values", leaf=VALUES),
    "ManifestWork": nested("kind: ManifestWork", "spec", "workload", "manifests", 0, leaf=OBJECT),
    "OpenShift Template": nested("kind: Template", "objects", 0, leaf=OBJECT),
    "Ansible": yaml.safe_dump([{"hosts": "all", "tasks": [{"k8s": {"definition": OBJECT}}]}], sort_keys=False),
    "ConfigMap of a HelmRelease of text": nested(
        "{apiVersion: v1, kind: ConfigMap}",
        "data",
        "release.yaml",
        leaf=nested("kind: HelmChart", "spec", "valuesContent", leaf=WRONG),
    ),
    "Kustomize patch in place": nested("kind: Kustomization", "patches", 0, "patch", leaf=OBJECT_TEXT),
    "Flux patch in place": nested("kind: Kustomization", "spec", "patches", 0, "patch", leaf=OBJECT_TEXT),
    "Argo CD patch in place": nested(
        "kind: Application", "spec", "source", "kustomize", "patches", 0, "patch", leaf=OBJECT_TEXT
    ),
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_policies_in_every_shape_are_checked_at_their_place(tmp_path: Path, text: str):
    found = problems(tmp_path, **{"file.yaml": text})
    lines = text.splitlines()
    assert sorted((p["severity"], p["field"]) for p in found) == [
        ("error", "spec.mode"),
        ("error", "spec.promotion.stabilisationSeconds"),
    ]
    there = [(lines[p["line"] - 1][p["column"] - 1 :]) for p in sorted(found, key=lambda p: p["field"])]
    assert [one.split(":")[0] for one in there] == ["mode", "stabilisationSeconds"]


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_correct_policies_in_every_shape_pass(tmp_path: Path, text: str):
    right = text.replace("Enforc", "Enforce").replace("stabilisationSeconds", "stabilizationSeconds")
    written(tmp_path, {"file.yaml": right})
    done = CliRunner().invoke(main, ["lint", str(tmp_path)])
    assert done.stdout == "1 file, 1 object, 0 errors, 0 warnings\n"


JSON_PATCH = "- {op: replace, path: /spec/mode, value: Enforc}\n"


BASE = POLICY.replace('  kafka: {bootstrapServers: ["kafka:9092"]}\n', "")
MISSING = "not checked: spec.kafka, which a patch may set: check the output of `kustomize build`"


@pytest.mark.parametrize(
    "file", ["base/policy.yaml", "overlays/prod/enforce.yaml", "overlays/prod/patches/enforce.yaml"]
)
def test_next_to_or_below_a_kustomization_fields_may_be_missing(tmp_path: Path, file: str):
    assert [p["severity"] for p in problems(tmp_path, **{file: BASE})] == ["error"]
    used = {"base/kustomization.yaml": "", "overlays/prod/kustomization.yaml": ""}
    assert [(p["severity"], p["message"]) for p in problems(tmp_path, **used)] == [("note", MISSING)]
    wrong = BASE.replace("Observe", "Enforc\n  $patch: merge\n  promotion: {stabilisationSeconds: 5}")
    found = problems(tmp_path, **{file: wrong})
    assert [p["field"] for p in found if p["severity"] == "error"] == [
        "spec.mode",
        "spec.promotion.stabilisationSeconds",
    ]


def test_a_complete_policy_next_to_a_kustomization_is_judged_together_with_others(tmp_path: Path):
    other = POLICY.replace("main", "other")
    found = problems(tmp_path, **{"kustomization.yaml": "", "a.yaml": POLICY, "b.yaml": other})
    assert [p["rule"] for p in found] == ["one-policy"]


def test_of_a_patch_in_place_the_fields_that_are_there_are_checked(tmp_path: Path):
    wrong = PATCH.replace("{mode: Enforce}", "{mode: Enforc, $patch: merge, kafka: {tls: {caSecret: x}}}")
    for text, fields in ((PATCH, []), (wrong, ["spec.mode", "spec.kafka.tls.caSecret"])):
        flux = nested("kind: Kustomization", "spec", "patches", 0, "patch", leaf=text)
        assert [p["field"] for p in problems(tmp_path, **{"flux.yaml": flux})] == fields


@pytest.mark.parametrize("mode", ["'{{ .Values.mode }}'", "${MODE}", "$(MODE)"], ids=["Helm", "Flux", "Kustomize"])
def test_fields_that_a_template_fills_in_are_not_checked(tmp_path: Path, mode: str):
    found = problems(
        tmp_path, **{"a.yaml": POLICY.replace("Observe", mode) + "  promotion: {stabilisationSeconds: 5}\n"}
    )
    assert [(p["severity"], p["field"]) for p in found] == [
        ("note", "spec.mode"),
        ("error", "spec.promotion.stabilisationSeconds"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (release(valuesFrom=[{"kind": "ConfigMap", "name": "v"}]), "values of a ConfigMap or Secret"),
        (application(parameters=[{"name": "policies[0].name"}]), "parameters, use valuesObject"),
        ("spec:\n  {{- if .Values.x }}\n  mode: x\n", "a Helm template and not YAML"),
        (
            nested("kind: ApplicationSet", "spec", "source", "helm", "values", leaf="policies:\n{{ range .x }}\n- a\n"),
            "a Helm template and not YAML",
        ),
        (
            nested("kind: Kustomization", "patches", 0, leaf={"target": {"name": "main"}, "patch": JSON_PATCH}),
            "a patch of no kind, check the output of `kustomize build`",
        ),
        (
            nested("kind: Kustomization", "patchesJson6902", 0, leaf={"target": {"kind": "BrokerHealth"}, "path": "p"}),
            "a patch of BrokerHealth, check the output of `kustomize build`",
        ),
        (
            nested("{apiVersion: v1, kind: ConfigMap}", "data", "README", leaf="a: [\napiVersion: bellwether.dev/v1"),
            "not YAML",
        ),
    ],
    ids=[
        "valuesFrom",
        "parameters",
        "Helm template",
        "template of values",
        "patch without kind",
        "JSON patch",
        "prose",
    ],
)
def test_what_is_not_checked_is_said_and_counted_and_fails_nothing(tmp_path: Path, text: str, said: str):
    written(tmp_path, {"kustomization.yaml": text})
    done = CliRunner().invoke(main, ["lint", str(tmp_path), "--strict"])
    assert done.exit_code == 0, done.stdout
    assert f": note: not checked: {said}" in done.stdout
    assert done.stdout.endswith("1 file, 0 objects, 0 errors, 0 warnings, 1 not checked\n")


def test_broken_yaml_in_a_text_is_an_error(tmp_path: Path):
    text = nested("kind: Application", "spec", "source", "helm", "values", leaf="policies:\n- name: a: b\n")
    (found,) = problems(tmp_path, **{"a.yaml": text})
    assert (found["severity"], found["rule"], found["line"]) == ("error", "yaml", len(text.splitlines()))


def test_other_charts_and_applications_and_patches_are_left_alone(tmp_path: Path):
    text = nested("kind: Kustomization", "patches", 0, leaf={"target": {"kind": "Deployment"}, "patch": JSON_PATCH})
    assert problems(tmp_path, **{"kustomization.yaml": text, "p.yaml": JSON_PATCH}) == []
    other = release(valuesFrom=[{"kind": "ConfigMap", "name": "v"}]).replace("bellwether", "kyverno")
    assert (
        problems(tmp_path, **{"a.yaml": other, "b.yaml": "kind: Application\nspec: {source: x, sources: {}}\n"}) == []
    )


def test_policies_of_the_own_chart_alone_are_checked(tmp_path: Path):
    values = {"policies": [{"name": "main", "spec": {"kaffka": {}}}]}
    for one in (release(values=values), nested("{}", "bellwether", leaf=values)):
        assert [p["field"] for p in problems(tmp_path, **{"a.yaml": one})][-1:] == ["spec.kaffka"]
        assert problems(tmp_path, **{"a.yaml": one.replace("bellwether", "kyverno")}) == []


@pytest.mark.parametrize("helm", ["xx", "[values, parameters]", "3"])
def test_an_application_of_odd_form_has_no_values(tmp_path: Path, helm: str):
    text = f"kind: Application\nspec: {{source: {{chart: bellwether, helm: {helm}}}}}\n"
    assert problems(tmp_path, **{"a.yaml": text}) == []


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
