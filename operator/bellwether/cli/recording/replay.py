"""``bellwether replay``: replay a recorded trace with its own or with other settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellwether.cli.output import OUTPUT, print_document
from bellwether.foreign_text import printable
from bellwether.ports.errors import BellwetherError

if TYPE_CHECKING:
    from bellwether.recording.trace_files import TraceReader
    from bellwether.simulation.replay_comparison import Difference
    from bellwether.simulation.replay_run import Replay

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("trace", type=_FILE)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="PATH=VALUE",
    help="Override a setting, such as promotion.stabilizationSeconds=10 or mode=Enforce; repeatable.",
)
@click.option("--filename", "-f", "policy_file", type=_FILE, help="Use the settings of this LeadershipPolicy (YAML).")
@click.option("--no-plan", is_flag=True, help="Judge only, and plan no moves; faster with many partitions.")
@OUTPUT
def replay(trace: Path, changes: tuple[str, ...], policy_file: Path | None, no_plan: bool, output: str) -> None:
    """Replay a recorded TRACE, optionally with other settings.

    Prints what this version would have done, and when, and compares it with the operator's recorded decisions. Contacts
    no cluster.
    """
    from bellwether.cli.policies.policy_files import only_policy
    from bellwether.recording.replay_settings import NO_LOADS, setting, settings_section, without_effect
    from bellwether.recording.trace_files import TraceReader
    from bellwether.recording.traces.trace_lines import text_of
    from bellwether.simulation.replay_comparison import differences
    from bellwether.simulation.replay_run import Replay

    try:
        reader = TraceReader(trace)
        settings = settings_section(only_policy(policy_file)) if policy_file is not None else None
        changed = [setting(text) for text in changes]
        played = Replay(reader.header, settings, changed, plan=not no_plan)
        timeline = played.play(reader.instants())
    except (BellwetherError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    idle = [said for said in map(without_effect, changed) if said is not None]
    for said in dict.fromkeys([*idle, NO_LOADS] if played.limited_loads else idle):
        click.echo(f"note: {printable(said)}", err=True)
    found = differences(timeline.said, timeline.replayed)
    if output != "table":
        print_document(_document(reader, played, found), output)
        return
    header = reader.header
    click.echo(printable(f"{header.namespace}/{header.policy}, from {text_of(header.started)} (times are UTC)"))
    for row in timeline.rows:
        click.echo(printable(row))
    _print_differences(found, asked_otherwise=bool(changes or policy_file), said=bool(timeline.said))
    if reader.truncated:
        click.echo("warning: the trace is incomplete: the recording was interrupted", err=True)


def _print_differences(found: list[Difference], *, asked_otherwise: bool, said: bool) -> None:
    if not said:
        click.echo("the trace contains no verdicts of the operator: nothing to compare with")
    elif not found:
        click.echo("no differences from the operator's recorded decisions")
    else:
        settings = "with other settings" if asked_otherwise else "with the recorded settings"
        click.echo(f"{len(found)} differences from the operator's recorded decisions, {settings}:")
        for one in found:
            click.echo(f"  {printable(one)}")


def _document(reader: TraceReader, played: Replay, found: list[Difference]) -> dict[str, Any]:
    from bellwether.recording.traces.trace_lines import text_of

    header = reader.header
    return {
        "policy": header.policy,
        "namespace": header.namespace,
        "started": text_of(header.started),
        "reconciles": played.reconciles,
        "truncated": reader.truncated,
        "timeline": [row.document() for row in played.timeline.rows],
        "differences": [one.document() for one in found],
    }
