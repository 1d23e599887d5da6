"""Values: good ones render, bad ones are refused by the field's name, and every one of them does something."""

from __future__ import annotations

import copy
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from chartvalues import chart_documents
from realparts.helm import Helm, HelmFailed

pytestmark = pytest.mark.chart

BAD = yaml.safe_load((Path(__file__).parent / "bad-values.yaml").read_text())


def test_the_chart_is_without_fault_under_all_good_values(helm: Helm, chart: Path, good: Path):
    said = helm.run("lint", "--strict", chart, "--values", good)
    assert "[WARNING]" not in said
    assert "[ERROR]" not in said


def test_there_is_something_of_everything_to_refuse():
    assert len(BAD) >= 20
    assert len({json.dumps(one["values"]) for one in BAD}) == len(BAD)


@pytest.fixture(scope="module")
def refusals(helm: Helm, chart: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By case, what the schema says: one Helm checks all values, for a chart that has this one once for each."""
    parent = tmp_path_factory.mktemp("parent")
    values = {f"bad{number}": bad["values"] for number, bad in enumerate(BAD)}
    shutil.copytree(chart, parent / "charts" / "bellwether")
    parts = [{"name": "bellwether", "version": ">=0.0.0-0", "alias": name} for name in values]
    about = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": parts}
    (parent / "Chart.yaml").write_text(yaml.safe_dump(about))
    with pytest.raises(HelmFailed) as refused:
        helm.template(parent, values)
    _, *said = re.split(r"^bad(\d+):$", str(refused.value), flags=re.MULTILINE)
    return {BAD[int(number)]["case"]: refusal for number, refusal in zip(said[::2], said[1::2], strict=True)}


@pytest.mark.parametrize("bad", BAD, ids=lambda one: one["case"].replace(" ", "-"))
def test_bad_values_are_refused_by_the_name_of_the_field(
    helm: Helm, chart: Path, refusals: dict[str, str], bad: dict[str, Any]
):
    if not (said := refusals.get(bad["case"], "")):  # what templates refuse ends Helm, at the first
        with pytest.raises(HelmFailed) as refused:
            helm.template(chart, bad["values"])
        said = str(refused.value)
    assert bad["field"] in said, said


def test_every_value_is_used_in_a_template(chart: Path):
    assert unused(chart) == []


def test_every_value_that_a_template_uses_exists(chart: Path):
    assert unknown(chart) == []


def test_a_value_that_nothing_uses_and_one_that_does_not_exist_are_found(tmp_path: Path):
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "x.yaml").write_text("{{ .Values.operator.replicaz }}\n")
    assert "operator.replicas" in unused(tmp_path)
    assert unknown(tmp_path) == ["operator.replicaz"]


def test_the_defaults_are_those_that_a_reader_sees(chart: Path):
    """Every value of ``values.yaml`` has a row in the README."""
    readme = (chart / "README.md").read_text()
    values = yaml.safe_load((chart / "values.yaml").read_text())
    leaves = [path for path in chart_documents.paths() if "[]" not in path and "{}" not in path]
    for path in leaves:
        assert f"| `{path}` |" in readme
        found = copy.deepcopy(values)
        for key in path.split("."):
            found = found[key]


# Helm itself looks at these, or hands them on.
NOT_OURS = {"global"}
# The operator reads these as they are.
PASSED_ON = ("load.stores{}", "load.profiles{}", "workloadIdentities{}")


def unused(chart: Path) -> list[str]:
    """Values whose key no template names."""
    words = set(re.findall(r"[A-Za-z]\w*", _templates(chart)))
    return sorted(
        path
        for path in chart_documents.paths()
        if path not in NOT_OURS
        and not path.startswith(PASSED_ON)
        and path.removesuffix("[]").rpartition(".")[2].rpartition("[]")[2] not in words
    )


def unknown(chart: Path) -> list[str]:
    """Paths that templates read of ``.Values`` and that do not exist."""
    known = {re.split(r"\[\]|\{\}", path)[0] for path in chart_documents.paths()}
    known |= {".".join(path.split(".")[:n]) for path in known for n in range(1, path.count(".") + 1)}
    read = set(re.findall(r"\.Values\.([A-Za-z][\w.]*\w)", _templates(chart)))
    # Below an object of Kubernetes' own anything may be read.
    return sorted(path for path in read if path not in known and not any(path.startswith(f"{one}.") for one in LOOSE))


LOOSE = ("podSecurity.pod", "podSecurity.container")


def _templates(chart: Path) -> str:
    return "\n".join(path.read_text() for path in sorted((chart / "templates").rglob("*")) if path.is_file())
