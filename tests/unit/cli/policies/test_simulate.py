"""``bellwether simulate``: a script, a cluster and a policy in; text and JSON out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bellwether.cli.main import main
from bellwether.recording.trace_files import TraceReader
from bellwether.simulation.replay_run import Replay
from sourcetree import ROOT

EXAMPLE = ROOT / "examples" / "simulate"
TRACES = sorted((ROOT / "tests" / "scenarios" / "traces").glob("*.jsonl"))


def simulate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)])


def of_example(*arguments: str | Path, script: Path = EXAMPLE / "cut-listener.yaml") -> Result:
    return simulate(script, "--cluster", EXAMPLE / "cluster.yaml", "--policy", EXAMPLE / "policy.yaml", *arguments)


def test_the_example_tells_second_by_second_what_happens():
    done = of_example()
    assert done.exit_code == 0, done.output
    assert "00:00:11 broker 1 is demoted, Signals ExternallyUnreachable\n00:00:11 5 leaders moved" in done.stdout
    assert "00:02:10 broker 1 may lead again" in done.stdout
    assert done.stdout == of_example().stdout


def test_a_simulation_ends_with_what_it_came_to():
    assert of_example().stdout.endswith(
        "\nbroker 1 led nothing for 119 s; broker 3 led nothing for 60 s; 10 leaders moved in all\n"
    )


def test_json_has_the_spans_of_each_broker():
    document = json.loads(of_example("-o", "json").stdout)
    spans = document["brokers"][0]["spans"]
    assert (spans[0]["from"], spans[-1]["to"]) == (0, document["seconds"])
    assert [s["state"] for s in spans if s["demoted"]] == ["Sick", "Recovering"]


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name)
def test_the_fault_of_a_recorded_incident_gives_its_verdict_and_moves(trace: Path, tmp_path: Path):
    reader = TraceReader(trace)
    timeline = Replay(reader.header).play(reader.instants())
    demoted, moved = (next(row for row in timeline.rows if row.what == what) for what in ("demoted", "moved"))
    script = tmp_path / "script.yaml"
    script.write_text(f"seconds: 20\nevents:\n  3: [{{say: {{brokers: [{demoted.broker}], reading: Failing}}}}]\n")
    done = simulate(script, "--trace", trace, "-o", "json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["timeline"]
    assert [(row["broker"], row["text"]) for row in rows if row["what"] == "demoted"] == [
        (demoted.broker, demoted.text)
    ]
    assert [row["text"] for row in rows if row["what"] == "moved"] == [moved.text]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("cluster.yaml", "brokers: 3\nbrokers: 4\n", "line 2: brokers is written twice"),
        ("cluster.yaml", "brokers: [\n", "line 2: not YAML"),
        ("cluster.yaml", "brokers: 3\n---\nbrokers: 3\n", "has 2 documents: it must have one"),
        ("policy.yaml", "kind: Secret\n", "has 0 LeadershipPolicies: it must have one"),
        ("policy.yaml", "kind: LeadershipPolicy\n", "metadata: is required"),
        ("policy.yaml", "kind: LeadershipPolicy\nspec: 1\n", "1 file, 1 object, 3 errors, 0 warnings"),
        ("cut-listener.yaml", "seconds: 10\nevents: {1: [{kill: [8]}]}\n", "events.1: {kill: [8]}: there"),
    ],
)
def test_bad_input_is_one_sentence_with_the_file(tmp_path: Path, file: str, text: str, message: str):
    for path in EXAMPLE.glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text() if path.name != file else text)
    script, cluster, policy = (tmp_path / name for name in ("cut-listener.yaml", "cluster.yaml", "policy.yaml"))
    done = simulate(script, "--cluster", cluster, "--policy", policy)
    assert done.exit_code == 1
    assert message in done.stderr


def test_what_is_to_be_simulated_must_be_said():
    script = EXAMPLE / "cut-listener.yaml"
    assert simulate(script).exit_code == 2
    assert "set --policy FILE" in simulate(script, "--cluster", EXAMPLE / "cluster.yaml").stderr
