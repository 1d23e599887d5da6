"""``bellwether lint``: files in, problems with line, column and remedy out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from bellwether.cli.main import main
from bellwether.cli.policies.yaml_documents import SIZE_LIMIT, VALUE_LIMIT
from sourcetree import ROOT
from testkit.kubernetes import api_objects, bad_objects
from testkit.messages import assert_wording

POLICY = """\
apiVersion: bellwether.dev/v1alpha1
kind: LeadershipPolicy
metadata: {name: main, namespace: kafka}
spec:
  mode: Observe
  kafka:
    bootstrapServers: ["kafka:9092"]
"""
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: kafka%s}\n"
LABELLED = ", labels: {bellwether.dev/purpose: kafka}"


def lint(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["lint", *arguments], input=stdin)


def written(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def problems(*arguments: str, stdin: str | None = None) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(lint(*arguments, "-o", "json", stdin=stdin).stdout)["problems"]
    return found


def test_the_examples_have_no_errors():
    done = lint(str(ROOT / "examples"))
    assert done.exit_code == 0, done.stdout


def test_a_misspelt_field_is_answered_with_its_place_and_the_right_name():
    done = lint("-", stdin=POLICY + "  promotion:\n    stabilisationSeconds: 5\n")
    assert done.exit_code == 4
    assert_wording(done.stdout)


BAD = {
    f"{name} in {body['kind']}": (body, field)
    for objects in (bad_objects.BAD_POLICIES, bad_objects.BAD_REBALANCES, bad_objects.BAD_HEALTHS)
    for name, (body, field) in objects.items()
}


@pytest.mark.parametrize(("body", "field"), BAD.values(), ids=BAD)
def test_what_the_api_server_refuses_is_an_error_at_its_field(body: api_objects.Body, field: str):
    found = problems("-", stdin=json.dumps(body))
    assert any(field in f"{p['field']} {p['message']}" for p in found if p["severity"] == "error")


@pytest.mark.parametrize(("body", "field"), bad_objects.UNKNOWN_FIELDS.values(), ids=bad_objects.UNKNOWN_FIELDS)
def test_an_unknown_field_is_an_error(body: api_objects.Body, field: str):
    assert str(problems("-", stdin=json.dumps(body))[0]["field"]).endswith(field)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (POLICY.replace("  kafka:", "\tkafka:"), "6:1", "the line is indented with a tab: use spaces"),
        (POLICY + "  mode: Enforce\n", "8:3", "mode is written twice, and only the last one counts: remove one"),
        (POLICY + "  a: [1, 2\n", "9:1", "not YAML: "),
        (POLICY + "  a: \x01\n", "8:6", "a control character is not allowed in YAML: remove it"),
        (POLICY + "  a: !vault x\n", "8:6", "the tag !vault is not supported: remove it"),
        (POLICY + "  a: !!int x\n", "8:6", "'x' is no int: correct it"),
        (POLICY + "  ? [a]\n  : b\n", "8:5", "a list or an object is used as a key: write a string"),
        (POLICY + "  a: &a [*a]\n", "8:6", "an alias refers to a value that contains it: write the value out"),
        (POLICY + "  a: " + "[" * 70 + "]" * 70 + "\n", "8:68", "is nested more than 64 levels deep: flatten it"),
        (POLICY + "  a: " + "9" * 5_000 + "\n", "8:6", "an integer of 5000 characters: at most 64 are read"),
        (POLICY + "  a: 0x" + "f" * 5_000 + "\n", "8:6", "an integer of 5002 characters: at most 64 are read"),
        (POLICY + "---\nhello\n", "9:1", "is not a Kubernetes object: it must have apiVersion, kind and metadata"),
        (POLICY.replace("alpha1", "beta1"), "1:1", "apiVersion: must be bellwether.dev/v1alpha1"),
        (POLICY.replace("LeadershipPolicy", "LeadershipPolcy"), "2:1", "kind LeadershipPolcy (did you mean"),
        (POLICY.replace("name: main", "name: Main"), "3:12", "metadata.name: must consist of lower case letters"),
        (POLICY.replace("name: main", "nam: main"), "3:12", "metadata.nam: no such field (did you mean name?)"),
        (POLICY.replace("kafka}", "kafka, labels: {a: 1}}"), "3:51", "metadata.labels.a: must be a string"),
        ("kind: LeadershipPolicy\n", "1:1", "metadata: is required: set metadata.name"),
    ],
)  # fmt: skip
def test_bad_yaml_is_one_sentence_with_its_place(text: str, place: str, message: str):
    done = lint("-", stdin=text)
    assert done.exit_code == 4
    assert [line for line in done.stdout.splitlines() if line.startswith(f"-:{place}: error: {message}")], done.stdout


def test_aliases_are_expanded_within_bounds():
    aliased = (
        POLICY.replace('["kafka:9092"]', '&x ["kafka:9092"]')
        + "  detection: {externalReachability: {bootstrapServers: *x}}\n"
    )
    assert lint("-", stdin=aliased).exit_code == 0
    levels = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 9))
    done = lint("-", stdin=f"{POLICY}  l0: &l0 [x, x]\n{levels}")
    assert_wording(done.stdout)


def test_a_merge_key_is_merged_and_is_no_duplicate():
    text = POLICY.replace("metadata:", "x: &x {mode: Observe}\nmetadata:").replace("  mode: Observe", "  <<: *x")
    assert [p["field"] for p in problems("-", stdin=text)] == ["x"]


def test_files_that_cannot_be_read_are_named_and_the_others_checked(tmp_path: Path):
    empty = tmp_path / "empty"
    empty.mkdir()
    good = written(tmp_path, "good.yaml", POLICY)
    big = written(tmp_path, "big.yaml", b"a: " + b"x" * SIZE_LIMIT)
    many = written(tmp_path, "many.yaml", f"a: [{'1,' * VALUE_LIMIT}]")
    latin = written(tmp_path, "latin.yaml", POLICY.encode() + "# Z\u00fcrich".encode("latin-1"))
    done = lint(str(tmp_path / "none.yaml"), str(empty), good, big, many, latin)
    assert done.exit_code == 4
    for place, message in (
        (f"{tmp_path}/none.yaml:1:1", "there is no such file"),
        (f"{empty}:1:1", "the folder has no file that ends in .yaml, .yml, .json"),
        (f"{big}:1:1", "the file has more than 4 MiB, the limit: split it, or leave it out"),
        (f"{many}:1:1", f"the file has more than {VALUE_LIMIT} values, the limit: split it, or leave it out"),
        (f"{latin}:8:4", "byte 0xfc is not UTF-8: save the file as UTF-8"),
    ):
        assert f"{place}: error: {message}" in done.stdout
    assert "6 files, 1 object, 5 errors, 0 warnings" in done.stdout


def test_several_documents_and_lists_are_checked_one_by_one(tmp_path: Path):
    bad = POLICY.replace("Observe", "observe")
    items = {
        "kind": "List",
        "apiVersion": "v1",
        "items": [api_objects.policy("one"), api_objects.policy("two", mode="x")],
    }
    written(tmp_path, "a.yaml", f"{POLICY}---\n{SECRET % ('other', '')}---\n{bad}")
    written(tmp_path, "b.json", json.dumps(items, indent=1))
    found = problems(str(tmp_path))
    assert [(p["field"], p["object"]) for p in found if p["rule"] == "schema"] == [
        ("spec.mode", "LeadershipPolicy kafka/main"),
        ("spec.mode", "LeadershipPolicy default/two"),
    ]


def test_two_policies_for_one_cluster_are_an_error_also_by_one_common_address(tmp_path: Path):
    one = written(tmp_path, "one.yaml", POLICY)
    servers = '["other:9092", "KAFKA:9092"]'
    two = written(tmp_path, "two.yaml", POLICY.replace("name: main", "name: next").replace('["kafka:9092"]', servers))
    done = lint(one, two)
    assert done.exit_code == 4
    text = f"{two}:7:5: error: kafka:9092 is also the cluster of LeadershipPolicy kafka/main in {one}:1"
    assert text in done.stdout


def test_the_same_policy_twice_is_a_warning(tmp_path: Path):
    first, second = written(tmp_path, "1.yaml", POLICY), written(tmp_path, "2.yaml", POLICY)
    assert lint(first, second).exit_code == 0
    assert "is also in" in lint(first, second).stdout
    assert lint(first, second, "--strict").exit_code == 4


VANTAGES = POLICY + "  detection: {externalReachability: {vantages: [eu-a, eu-b]}}\n"
VALUES = "probers:\n- {kind: Reachability, namespaces: [kafka, pay], vantage: eu-a}\n"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: prober}
spec:
  template:
    spec:
      containers:
      - args: [probe, reachability, --policy=main, --namespace=kafka, "--vantage=eu-c"]
"""


def test_vantages_are_held_against_probers_if_there_are_any(tmp_path: Path):
    policy = written(tmp_path, "policy.yaml", VANTAGES)
    assert problems(policy) == []
    values = written(tmp_path, "values.yaml", VALUES)
    assert [(p["line"], p["column"], p["severity"]) for p in problems(policy, values)] == [(8, 55, "warning")]
    prober = written(tmp_path, "prober.yaml", DEPLOYMENT)
    messages = [str(p["message"]) for p in problems(policy, values, prober)]
    assert_wording(messages[0], messages[1])
    assert problems(policy, written(tmp_path, "values.yaml", VALUES.replace("kafka", "other"))) == []


WITH_SECRET = POLICY + "    tls: {caSecretName: kafka-ca}\n"


def test_secrets_are_looked_for_if_there_are_any_and_need_the_purpose_label(tmp_path: Path):
    policy = written(tmp_path, "policy.yaml", WITH_SECRET)
    assert problems(policy) == []
    other = written(tmp_path, "other.yaml", SECRET % ("kafka-cas", LABELLED))
    (missing,) = problems(policy, other)
    assert missing["field"] == "spec.kafka.tls.caSecretName"
    assert_wording(str(missing["message"]))
    bare = written(tmp_path, "other.yaml", SECRET % ("kafka-ca", ""))
    (unlabelled,) = problems(policy, bare)
    assert "lacks the label bellwether.dev/purpose=kafka" in str(unlabelled["message"])
    assert problems(policy, written(tmp_path, "other.yaml", SECRET % ("kafka-ca", LABELLED))) == []


def test_named_source_must_be_among_those_of_the_files(tmp_path: Path):
    policy = written(tmp_path, "policy.yaml", json.dumps(api_objects.naming("prom")))
    assert problems(policy) == []
    other = written(tmp_path, "other.yaml", json.dumps(api_objects.source("proms", plugin={"type": "Wear"})))
    (missing,) = problems(policy, other)
    assert (missing["severity"], missing["field"]) == ("warning", "spec.detection.signalSources[0]")
    assert_wording(str(missing["message"]))
    values = {"signalSources": [{"name": "prom", "namespace": "default", "spec": {"plugin": {"type": "Wear"}}}]}
    assert problems(policy, written(tmp_path, "other.yaml", json.dumps(values))) == []
    elsewhere = api_objects.source("proms", "kafka", plugin={"type": "Wear"})
    assert problems(policy, written(tmp_path, "other.yaml", json.dumps(elsewhere))) == []


def rebalance(name: str, policy: str = "main") -> str:
    head = "apiVersion: bellwether.dev/v1alpha1\nkind: LeaderRebalance\n"
    return f"{head}metadata: {{name: {name}, namespace: kafka}}\nspec: {{policy: {policy}}}\n"


def test_rebalances_must_name_a_policy_of_the_files_and_be_the_only_one(tmp_path: Path):
    written(tmp_path, "a.yaml", POLICY)
    assert problems(str(tmp_path)) == []
    written(tmp_path, "b.yaml", rebalance("one") + "---\n" + rebalance("two") + "---\n" + rebalance("three", "mian"))
    found = problems(str(tmp_path))
    assert [(p["rule"], p["severity"], p["field"]) for p in found] == [
        ("rebalance", "error", "spec"),
        ("rebalance", "warning", "spec.policy"),
    ]
    assert_wording([p["message"] for p in found])


def test_a_limit_by_load_without_rebalance_is_a_warning(tmp_path: Path):
    written(tmp_path, "a.yaml", POLICY + "  demotion: {capacity: {maxBytesPerSecond: 9, maxLeaders: 9}}\n")
    (found,) = problems(str(tmp_path))
    assert (found["severity"], found["field"]) == ("warning", "spec.demotion.capacity.maxBytesPerSecond")
    assert_wording(found["message"])
    written(tmp_path, "b.yaml", rebalance("one"))
    assert problems(str(tmp_path)) == []


def test_the_former_field_of_a_policy_is_answered_with_the_new_object(tmp_path: Path):
    (found,) = problems(written(tmp_path, "a.yaml", POLICY + "  rebalance: {schedule: 0 4 * * *}\n"))
    assert found["severity"] == "error"
    assert_wording(found["message"])


def test_policies_in_chart_values_are_checked_with_their_secrets(tmp_path: Path):
    kafka = "{bootstrapServers: ['k:1'], tls: {caSecretName: ca}}"
    entry = f"policies:\n- name: main\n  spec:\n    mode: observe\n    kafka: {kafka}\n"
    (wrong,) = problems(written(tmp_path, "values.yaml", entry))
    assert (wrong["line"], wrong["column"], wrong["field"]) == (4, 5, "spec.mode")
    good = entry.replace("observe", "Observe") + "rbac: {secretNames: [cas]}\n"
    (unread,) = problems(written(tmp_path, "values.yaml", good))
    assert "Secret ca is not in rbac.secretNames" in str(unread["message"])


def test_unknown_racks_are_errors_if_the_cluster_is_described(tmp_path: Path):
    policy = written(tmp_path, "policy.yaml", POLICY + "  placement: {racks: [eu-a, eu-x]}\n")
    assert problems(policy) == []
    cluster = written(tmp_path, "cluster.yaml", "brokers: {1: eu-a, 2: eu-b}\n")
    (unknown,) = problems(policy, "--cluster", cluster)
    assert unknown["field"] == "spec.placement.racks[1]"
    assert_wording(unknown["message"])
    refused = lint(policy, "--cluster", written(tmp_path, "cluster.yaml", "broker: 3\n"))
    assert (refused.exit_code, "broker: no such field" in refused.stderr) == (1, True)


def test_a_status_is_ignored_with_a_warning():
    done = lint("-", stdin=POLICY + "status: {anything: 1}\n")
    assert done.exit_code == 0
    assert_wording(done.stdout)


def test_the_pre_commit_hook_runs_this_command_on_yaml_files():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, *arguments = hook["entry"].split()
    files = sorted(str(path) for path in (ROOT / "examples/policies").iterdir())
    assert (program, hook["language"]) == ("bellwether", "python")
    assert all(re.search(hook["files"], file) for file in files)
    assert CliRunner().invoke(main, [*arguments, *files]).exit_code == 0
