"""``bellwether simulate``: what a policy would do in a fault script, as text or document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellwether.cli.output import OUTPUT, picked, print_document, printed
from bellwether.core.listing import counted
from bellwether.core.settings.policy import Policy
from bellwether.ports.errors import BellwetherError
from bellwether.recording.traces.merge_patch import patched
from bellwether.simulation.cluster_description import cluster_of
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.replayed_cluster import ReplayedCluster

if TYPE_CHECKING:
    from bellwether.simulation.fault_script import Simulation

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("script", type=_FILE)
@click.option("--cluster", type=_FILE, help="Description of the cluster: brokers with racks, topics (YAML).")
@click.option("--trace", type=_FILE, help="Take the cluster, and without --policy the settings, from a recorded trace.")
@click.option("--policy", "policy_file", type=_FILE, help="File with the LeadershipPolicy (YAML).")
@OUTPUT
def simulate(script: Path, cluster: Path | None, trace: Path | None, policy_file: Path | None, output: str) -> None:
    """Simulate the faults of SCRIPT on a cluster in memory.

    Shows what the operator would do with the policy, and when: verdicts, demotions, moves of leaders and their
    return. It is the operator's own reconcile with a virtual clock; it contacts no cluster and takes seconds for hours.
    At the start every prober reports that all brokers are reachable and all disks are fast.
    """
    from bellwether.cli.policies.yaml_documents import described
    from bellwether.recording.traces.trace_lines import UnreadableTrace
    from bellwether.simulation.fault_script import script_of
    from bellwether.simulation.fault_script import simulate as run_script

    try:
        site, policy = _subject(cluster, trace, policy_file)
        done = described(script, lambda values: run_script(site, policy, script_of(values)))
    except (BellwetherError, UnreadableTrace, ValueError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    if output != "table":
        print_document(_document(done), output)
        return
    for row in done.rows:
        click.echo(row)
    heads = ("broker", "state at the end", "leaders at the start", "least", "at the end")
    rows = [
        (str(b), spans[-1].state, str(spans[0].leaders), str(min(s.leaders for s in spans)), str(spans[-1].leaders))
        for b, spans in done.brokers.items()
    ]
    printed(heads, rows)
    click.echo(f"\n{_summary(done)}")


def _summary(done: Simulation) -> str:
    """What it came to, in one sentence."""
    idle = {b: sum(s.end - s.start for s in spans if not s.leaders) for b, spans in done.brokers.items()}
    parts = [f"broker {broker} led nothing for {seconds} s" for broker, seconds in idle.items() if seconds]
    return "; ".join([*parts, f"{counted(sum(change.moved for change in done.changes), 'leader')} moved in all"])


def _subject(cluster: Path | None, trace: Path | None, policy_file: Path | None) -> tuple[MemoryCluster, Policy]:
    """The cluster and the policy."""
    from bellwether.cli.policies.policy_files import only_policy
    from bellwether.cli.policies.yaml_documents import described

    if trace is not None and cluster is None:
        recorded, settings = _of_trace(trace)
        return recorded, settings if policy_file is None else only_policy(policy_file).policy()
    if trace is not None or cluster is None:
        raise click.UsageError("set either --cluster FILE or --trace FILE")
    if policy_file is None:
        raise click.UsageError("set --policy FILE: only a trace has settings of its own")
    return described(cluster, cluster_of), only_policy(policy_file).policy()


def _of_trace(trace: Path) -> tuple[MemoryCluster, Policy]:
    """The cluster and the settings with which a trace begins."""
    from bellwether.recording.replay_settings import policy_of
    from bellwether.recording.trace_files import TraceReader
    from bellwether.recording.traces.cluster_section import read_cluster

    reader = TraceReader(trace)
    state: dict[str, Any] = {}
    for instant in reader.instants():
        state = patched(state, instant.news)
        if "cluster" in state and "policy" in state:
            header = reader.header
            policy = policy_of(state["policy"], header.policy, header.namespace, ()).policy()
            return ReplayedCluster(read_cluster(state["cluster"])), policy
    raise ValueError(f"{trace}: has no cluster and no policy: record it again")


def _document(done: Simulation) -> dict[str, Any]:
    return {
        "seconds": done.seconds,
        "timeline": [row.document() for row in done.rows],
        "leadersMoved": sum(change.moved for change in done.changes),
        "brokers": [
            {
                "broker": broker,
                "spans": [{"from": s.start, "to": s.end, **picked(s, "state demoted leaders")} for s in spans],
            }
            for broker, spans in done.brokers.items()
        ],
    }
