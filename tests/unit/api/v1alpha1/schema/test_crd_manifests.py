"""The definitions hold nothing that an API server refuses, and everything that a person needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
import yaml
from click.testing import CliRunner
from pydantic import Field

from bellwether.api.v1alpha1.base_model import VALIDATIONS, Model, Rule
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.generate import differences, main
from bellwether.api.v1alpha1.leader_rebalance import LeaderRebalance
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.schema.crd_manifests import KINDS, Kind, manifests
from bellwether.api.v1alpha1.schema.structural_schema import KEPT, structural
from bellwether.api.v1alpha1.status.policy_status import LeadershipPolicyStatus
from bellwether.api.v1alpha1.status.status_conditions import UNREAD, UNSEEN, UNUSED
from bellwether.cli.installation.crds import crds

ROOT = Path(__file__).parents[5]
EXAMPLES = ROOT / "examples" / "policies"


def schemas(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from schemas(field, f"{path}.{name}")
    if "items" in schema:
        yield from schemas(schema["items"], f"{path}[]")


@pytest.fixture(scope="module")
def fields() -> list[tuple[str, dict[str, Any]]]:
    """Every field of every kind, by its path."""
    return [field for kind in KINDS for field in schemas(kind.schema(), kind.name)]


def test_a_field_says_only_what_an_api_server_accepts(fields: list[tuple[str, dict[str, Any]]]):
    for path, schema in fields:
        assert set(schema) <= KEPT, path
        if schema.get("type") == "array":
            assert "maxItems" in schema, f"{path}: an unbounded list"
        if schema.get("type") == "string" and not {"enum", "format"} & set(schema) and path.count(".") > 1:
            assert "maxLength" in schema, f"{path}: an unbounded string"
        if schema.get("type") == "integer":
            assert "minimum" in schema, path
        for rule in schema.get(VALIDATIONS, []):
            assert "\n" not in rule["message"], path
        if schema.get("x-kubernetes-list-type") == "map":
            assert set(schema["x-kubernetes-list-map-keys"]) <= set(schema["items"]["required"]), path


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.short)
def test_every_column_shows_a_field_that_exists(kind: Kind):
    names = {path.removeprefix(kind.name).replace("[]", "") for path, _ in schemas(kind.schema(), kind.name)}
    for column in kind.columns:
        path = re.sub(r"\[.*\]", "", column.path)
        assert path in names | {".metadata.creationTimestamp"}, column


def test_only_unwritten_status_has_default(fields: list[tuple[str, dict[str, Any]]]):
    defaults = {path: schema["default"] for path, schema in fields if ".status" in path and "default" in schema}
    assert defaults == {
        "LeadershipPolicy.status": {"conditions": [UNSEEN]},
        "LeaderRebalance.status": {"conditions": [UNREAD]},
        "SignalSource.status": {"conditions": [UNUSED]},
    }
    assert LeadershipPolicyStatus.model_validate({"conditions": [UNSEEN]}).conditions == ()


def test_a_model_that_a_crd_cannot_say_stops_the_generator():
    class Choice(Model):
        either: Annotated[list[str] | int, Field(description="x")] = 1

    class Mute(Model):
        field: int = 1

    with pytest.raises(ValueError, match="cannot choose"):
        structural(Choice, defaults=True)
    with pytest.raises(ValueError, match="description"):
        structural(Mute, defaults=True)


def test_a_rule_is_written_once_for_both_sides():
    class Pair(Model):
        low: int = Field(default=0, description="x")
        high: int = Field(default=1, description="x")
        rules: ClassVar[tuple[Rule, ...]] = (
            Rule("self.low < self.high", "must exceed low", lambda p: p.low < p.high, "high"),
        )

    assert structural(Pair, defaults=True)[VALIDATIONS] == [
        {"rule": "self.low < self.high", "message": "must exceed low", "fieldPath": ".high"}
    ]
    with pytest.raises(ValueError, match="must exceed low"):
        Pair(low=2)


def test_the_generated_files_are_fresh():
    assert differences(ROOT) == "", "run: make generate"


def test_a_stale_file_is_found_and_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "pyproject.toml").touch()
    arguments = ["--root", str(tmp_path)]
    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 0
    (tmp_path / "crds" / "brokerhealths.yaml").write_text("stale: true\n")
    assert main([*arguments, "--check"]) == 1
    printed = capsys.readouterr()
    assert "-stale: true" in printed.out
    assert "make generate" in printed.err


def test_it_is_not_written_elsewhere_by_mistake(tmp_path: Path):
    with pytest.raises(SystemExit):
        main(["--root", str(tmp_path)])
    assert not list(tmp_path.iterdir())


def test_the_command_prints_what_the_folder_holds():
    result = CliRunner().invoke(crds)
    assert result.exit_code == 0
    printed = list(yaml.safe_load_all(result.output))
    assert printed == [yaml.safe_load((ROOT / "crds" / f"{kind.plural}.yaml").read_text()) for kind in KINDS]
    assert result.output == manifests()


def test_the_examples_are_valid():
    minimal = LeadershipPolicy.read(yaml.safe_load((EXAMPLES / "minimal.yaml").read_text()))
    full = LeadershipPolicy.read(yaml.safe_load((EXAMPLES / "full.yaml").read_text()))
    placed = LeadershipPolicy.read(yaml.safe_load((EXAMPLES / "placement.yaml").read_text()))
    override = BrokerHealth.read(yaml.safe_load((EXAMPLES / "override.yaml").read_text()))
    assert minimal.policy().mode == "Observe"
    assert full.policy().mode == "Enforce"
    assert placed.policy().placement is not None
    assert override.override_() is not None


def test_the_full_example_names_every_field():
    spec = yaml.safe_load((EXAMPLES / "full.yaml").read_text())["spec"]
    # A cluster is named by its addresses or by Strimzi's name for it, never by both.
    strimzi = yaml.safe_load((EXAMPLES / "strimzi.yaml").read_text())["spec"]["kafka"]
    spec["kafka"] = {**spec["kafka"], **strimzi}
    # A user is named by a password, by tokens or by the Secret of a KafkaUser, never by two of them.
    user, *tokens = (
        next(yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()))
        for name in ("kafka-user", "oauth", "msk-iam", "workload-identity")
    )
    for one in tokens:
        spec["kafka"]["sasl"] |= one["spec"]["kafka"]["sasl"]
    spec["kafka"]["userSecretName"] = user["spec"]["kafka"]["userSecretName"]
    # Racks are preferred in one place, by the policy or by its load plans.
    placed = yaml.safe_load((EXAMPLES / "placement.yaml").read_text())["spec"]
    weighted = [w for rule in placed["placement"]["topics"] for w in rule.get("weights", [])]
    spec |= {"placement": {**placed["placement"], "weights": weighted}}
    assert_every_field(KINDS[0], spec)


def test_the_examples_of_signal_sources_name_every_field():
    found = [
        body["spec"]
        for name in ("signal-sources", "prometheus", "workload-identity")
        for body in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text())
        if body["kind"] == "SignalSource"
    ]
    # A Prometheus has one kind of credentials.
    spec = {part: {k: v for one in found for k, v in one.get(part, {}).items()} for part in ("prometheus", "plugin")}
    spec["prometheus"]["rules"] = [rule for one in found for rule in one.get("prometheus", {}).get("rules", ())]
    assert_every_field(KINDS[3], spec)


def test_the_example_of_a_rebalance_names_every_field():
    body = yaml.safe_load((EXAMPLES / "leader-rebalance.yaml").read_text())
    LeaderRebalance.read(body)
    assert_every_field(KINDS[2], body["spec"])


def assert_every_field(kind: Kind, spec: dict[str, Any]) -> None:
    for path, _ in schemas(kind.schema()["properties"]["spec"], ""):
        place: Any = spec
        for step in path.replace("[]", "").split(".")[1:]:
            place = {k: v for item in place for k, v in item.items()} if isinstance(place, list) else place
            assert step in place, path
            place = place[step]
