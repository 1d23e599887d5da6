"""What an administrator configures: names, who may use them, and errors with file, field and remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether_load.api.load_config import InvalidLoadConfig, LoadConfig, NotConfigured
from testkit.kubernetes import api_objects
from testkit.messages import assert_wording

STORES = {
    "default": {"namespaces": ["*"], "uri": "s3://loads/all?region=eu&scheme=http&endpoint_override=minio:9000"},
    "archive": {"namespaces": ["team-a", "team-b"], "uri": "/var/lib/loads"},
    "private": {"namespaces": ["team-b"], "uri": "gs://private"},
}
PROFILES = {
    "default": {"namespaces": ["*"], "image": "bellwether-spark:1"},
    "large": {"namespaces": ["team-b"], "image": "bellwether-spark:1", "resources": {"memory": "64Gi"}},
}


def policy(namespace: str = "team-a", name: str = "orders", **rebalance: Any) -> LeadershipPolicy:
    body = api_objects.policy(name)
    body["metadata"]["namespace"] = namespace
    return api_objects.rebalanced(body, **rebalance)


def config(stores: Any = STORES, profiles: Any = PROFILES) -> LoadConfig:
    return LoadConfig.model_validate({"stores": stores, "profiles": profiles})


def refused(tmp_path: Path, content: Any) -> str:
    """What is said of a file with that content."""
    path = tmp_path / "load.yaml"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InvalidLoadConfig) as found:
        LoadConfig.read(path)
    return str(found.value).replace(str(path), "FILE")


def test_a_policy_gets_the_store_and_the_profile_that_it_names():
    found = config().settings(policy("team-b", store="archive", profile="large"))
    assert (found.uri, found.profile.resources.memory) == ("/var/lib/loads/team-b/orders", "64Gi")


@pytest.mark.parametrize(
    ("uri", "own"),
    [
        ("/data/", "/data/team-a/orders"),
        ("gs://bucket", "gs://bucket/team-a/orders"),
        ("s3://b/p?region=eu&scheme=http", "s3://b/p/team-a/orders?region=eu&scheme=http"),
    ],
)
def test_each_policy_has_a_directory_of_its_own_in_a_store(uri: str, own: str):
    assert config({"default": {"namespaces": ["*"], "uri": uri}}).uri(policy()) == own


def test_no_two_policies_share_a_directory():
    found = {config().uri(policy(namespace, name)) for namespace in ("a", "a-b") for name in ("b", "b-c", "b.c")}
    assert len(found) == 6


def test_a_policy_that_does_not_rebalance_yet_is_sampled_into_the_default_store():
    sampled = LeadershipPolicy.read(api_objects.policy(name="orders"))
    assert config(STORES | {"default": {"namespaces": ["*"], "uri": "/data"}}).uri(sampled) == "/data/default/orders"


def test_a_forbidden_store_is_refused_like_an_unknown_one():
    texts = []
    for name in ("private", "unknown"):
        with pytest.raises(NotConfigured) as found:
            config().settings(policy(store=name))
        texts.append(str(found.value).replace(name, "NAME"))
    assert_wording(texts[0])
    assert texts[0] == texts[1], "names of other namespaces are not disclosed"


def test_a_profile_that_the_namespace_may_not_use_is_refused():
    with pytest.raises(NotConfigured, match=r"spec\.profile is 'large', but .* may only use default: "):
        config().settings(policy(profile="large"))


def test_without_a_file_a_policy_that_rebalances_is_refused_with_what_is_missing():
    with pytest.raises(NotConfigured) as found:
        LoadConfig.read(None).settings(policy())
    assert_wording(str(found.value))


def test_a_file_is_read(tmp_path: Path):
    (tmp_path / "load.yaml").write_text(json.dumps({"stores": STORES, "profiles": PROFILES}))
    assert LoadConfig.read(tmp_path / "load.yaml") == config()


BAD: dict[str, tuple[Any, str]] = {
    "a store without an address": (
        {"stores": {"a": {"namespaces": ["*"]}}},
        "stores.a.uri: is required: set it",
    ),
    "a store for no namespace": (
        {"stores": {"a": {"uri": "/x", "namespaces": []}}},
        "stores.a.namespaces: has 0 entries: at least 1 must be set",
    ),
    "all namespaces and one": (
        {"stores": {"a": {"uri": "/x", "namespaces": ["*", "b"]}}},
        "stores.a.namespaces: has '*' and other names: keep either '*' or the names",
    ),
    "a password in an address": (
        {"stores": {"a": {"uri": "s3://key:secret@bucket", "namespaces": ["*"]}}},
        "stores.a.uri: must be an absolute path or a URI without user or password, such as s3://bucket/bellwether",
    ),
    "a claim for a bucket": (
        {"stores": {"a": {"uri": "s3://b", "namespaces": ["*"], "persistentVolumeClaim": "loads"}}},
        "stores.a.persistentVolumeClaim: requires a uri that is an absolute path, where the claim is mounted: change"
        " one of them",
    ),
    "a field with a typing error": (
        {"stores": {"a": {"uri": "/x", "namespaces": ["*"], "environmentSecretNam": "s"}}},
        "stores.a.environmentSecretNam: no such field (did you mean environmentSecretName?)",
    ),
    "a job without an image": (
        {"profiles": {"a": {"namespaces": ["*"]}}},
        "profiles.a.image: is required: set it",
    ),
    "executors without an account": (
        {"profiles": {"a": {"namespaces": ["*"], "type": "SparkOnKubernetes", "image": "x"}}},
        "profiles.a.serviceAccountName: must be a ServiceAccount that may create pods, because type is"
        " SparkOnKubernetes: set it",
    ),
    "a setting that is not Spark's": (
        {"profiles": {"a": {"namespaces": ["*"], "image": "x", "sparkConf": {"java.opts": "x"}}}},
        "profiles.a.sparkConf.java.opts: must be the name of a Spark setting, such as spark.driver.memory",
    ),
    "memory in words": (
        {"profiles": {"a": {"namespaces": ["*"], "image": "x", "resources": {"memory": "much"}}}},
        "profiles.a.resources.memory: must be a Kubernetes quantity, such as 2, 500m or 4Gi",
    ),
    "a name with a slash": (
        {"stores": {"a/b": {"uri": "/x", "namespaces": ["*"]}}},
        "stores.a/b: must be a name of lower case letters, digits and '-'",
    ),
    "a list": (["stores"], "object: must be an object with fields"),
}


@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD)
def test_an_invalid_file_is_refused_with_its_name_the_field_and_the_remedy(tmp_path: Path, content: Any, said: str):
    assert refused(tmp_path, content) == f"--load-config FILE: {said}"


def test_a_file_that_is_not_yaml_is_refused_with_the_line(tmp_path: Path):
    assert_wording(refused(tmp_path, "stores:\n  a: [\n"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(InvalidLoadConfig, match="absent cannot be read: No such file"):
        LoadConfig.read(tmp_path / "absent")


def test_an_empty_file_configures_nothing(tmp_path: Path):
    (tmp_path / "load.yaml").touch()
    assert LoadConfig.read(tmp_path / "load.yaml") == LoadConfig()
