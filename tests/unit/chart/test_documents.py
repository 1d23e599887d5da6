"""The chart's written files say the same: defaults, schema and README come from one model."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from chartvalues import chart_documents, generate
from chartvalues.values import Values

EXAMPLES = Path(__file__).parents[2] / "integration" / "chart"
VALUES = yaml.safe_load(chart_documents.values_yaml())
SCHEMA = json.loads(chart_documents.schema_json())


def test_the_defaults_as_they_are_written_are_valid_values_and_the_models_own():
    assert Values.model_validate(VALUES) == Values()


def test_every_value_has_a_comment_above_it_that_says_what_it_means():
    lines = chart_documents.values_yaml().splitlines()
    bare = [
        line
        for before, line in itertools.pairwise(lines)
        if line.strip() and not line.lstrip().startswith("#") and not before.lstrip().startswith("#")
    ]
    assert bare == []


def test_no_line_of_the_comments_is_longer_than_a_reader_likes():
    assert max(len(line) for line in chart_documents.values_yaml().splitlines() if line.lstrip().startswith("#")) <= 120


def test_the_readme_has_a_row_for_every_value_with_its_default():
    table = chart_documents.table()
    assert "| `operator.replicas` | `2` | One replica is active for each Kafka cluster" in table
    assert "| `probers` | `[]` | Probers; one Deployment for each. |" in table
    assert '| `probers[].plugin` | `""` | Signal type of the plug-in; required for Plugin. |' in table
    assert table.count("\n") == len(chart_documents.paths()) + 1


def test_the_schema_takes_no_key_that_no_model_has():
    # Values that a parent chart gives to all of its charts.
    own = [one for name, one in SCHEMA["$defs"].items() if name != "Global"]
    objects = [SCHEMA, *(one for one in own if one["type"] == "object")]
    closed = [one for one in objects if "properties" in one]
    assert len(closed) == len(objects)
    assert all(one["additionalProperties"] is False for one in closed)


def test_the_schema_knows_every_value_of_the_defaults():
    assert list(unknown(VALUES, SCHEMA)) == []


def test_the_schema_says_nothing_but_constraints():
    text = json.dumps(SCHEMA)
    assert '"title"' not in text
    assert '"default"' not in text


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("operator.replicas", "2"),
        ("operator.replicas", 11),
        ("operator.leaseRenewSeconds", 0.1),
        ("operator.resources", {"limits": {"memory": "1GB!"}}),
        ("image.digest", "sha256:short"),
        ("watchNamespaces", ["Kafka"]),
        ("watchNamespaces", ["a" * 64]),
        ("crds.install", "true"),
        ("prober.priorityClassName", "Not A Name"),
        ("probers", [{"kind": "Reachability", "vantage": "here", "policy": "main"}]),
        ("probers", [{"kind": "Reachability", "vantage": "two words"}]),
        ("sidecars.metricsPorts", [9465]),
        ("sidecars.dataVolumes", [{"name": "Data"}]),
        ("sidecars.accounts", [{"name": "a", "policy": "b", "dataVolumes": [{"name": "c", "mount": "/d"}]}]),
        ("load.stores", {"a": {"namespaces": ["*"], "uri": "relative/path"}}),
        ("load.stores", {"A": {"namespaces": ["*"], "uri": "/x"}}),
        ("load.profiles", {"a": {}}),
        ("monitoring.serviceMonitor.interval", "often"),
        ("nothing", {}),
        ("operator.nothing", 1),
    ],
)
def test_what_the_models_refuse(path: str, value: Any):
    body: dict[str, Any] = {}
    inner, keys = body, path.split(".")
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    inner[keys[-1]] = value
    with pytest.raises(ValidationError) as refused:
        Values.model_validate(body)
    assert ".".join(str(part) for part in refused.value.errors()[0]["loc"]).startswith(path)


@pytest.mark.parametrize("path", sorted((EXAMPLES / "good").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_models_accept_what_the_chart_is_tested_with(path: Path):
    Values.model_validate(yaml.safe_load(path.read_text()))


def test_the_models_refuse_whatever_the_schema_refuses():
    bad = [one for one in yaml.safe_load((EXAMPLES / "bad-values.yaml").read_text()) if one["field"].startswith("/")]
    assert bad
    for one in bad:
        with pytest.raises(ValidationError) as refused:
            Values.model_validate(one["values"])
        paths = ["/" + "/".join(str(part) for part in error["loc"]) for error in refused.value.errors()]
        assert one["field"] in paths, one["case"]


def test_the_generated_files_are_written_and_a_stale_one_is_found(tmp_path: Path):
    generate.write(tmp_path)
    assert generate.differences(tmp_path) == ""
    stale = tmp_path / generate.CHART / "values.yaml"
    stale.write_text(stale.read_text().replace("replicas: 2", "replicas: 3", 1))
    (tmp_path / generate.CHART / "Chart.yaml").unlink()
    difference = generate.differences(tmp_path)
    assert "-  replicas: 3" in difference
    assert "expected/helm/bellwether/Chart.yaml" in difference


def test_the_command_says_what_is_stale_and_refuses_a_folder_that_is_no_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "pyproject.toml").touch()
    assert generate.main(["--root", str(tmp_path), "--check"]) == 1
    assert "make generate" in capsys.readouterr().err
    assert generate.main(["--root", str(tmp_path)]) == 0
    assert generate.main(["--root", str(tmp_path), "--check"]) == 0
    with pytest.raises(SystemExit):
        generate.main(["--root", str(tmp_path / "helm")])
    assert "run it at the repository's root" in capsys.readouterr().err


def unknown(values: dict[str, Any], schema: dict[str, Any], at: str = "") -> list[str]:
    """Values that the schema has no property for."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if "properties" not in schema:
        return []
    found = [f"{at}{key}" for key in values if key not in schema["properties"]]
    for key, value in values.items():
        if isinstance(value, dict) and key in schema["properties"]:
            found += unknown(value, schema["properties"][key], f"{at}{key}.")
    return found
