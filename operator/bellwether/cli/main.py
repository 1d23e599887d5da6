"""Root of the command line: commands and their modules. A command's implementation is imported when it runs."""

from __future__ import annotations

import click

from bellwether import __version__
from bellwether.cli.lazy_group import LazyGroup

# command -> module:object
VERBS = {
    "approve": "bellwether.cli.commands.rebalance.approve:approve",
    "check": "bellwether.cli.commands.diagnosis.check:check",
    "crds": "bellwether.cli.commands.installation.crds:crds",
    "demote": "bellwether.cli.commands.leadership.demote:demote",
    "diff": "bellwether.cli.commands.policies.diff:diff",
    "doctor": "bellwether.cli.commands.diagnosis.doctor:doctor",
    "drain": "bellwether.cli.commands.leadership.drain:drain",
    "elect": "bellwether.cli.commands.planning.elect:elect",
    "explain": "bellwether.cli.commands.diagnosis.explain:explain",
    "history": "bellwether.cli.commands.diagnosis.history:history",
    "lint": "bellwether.cli.commands.policies.lint:lint",
    "operator": "bellwether.cli.commands.installation.operate:operator",
    "plan": "bellwether.cli.commands.planning.plan:plan",
    "probe": "bellwether.cli.commands.probe:probe",
    "promote": "bellwether.cli.commands.leadership.demote:promote",
    "rebalance": "bellwether.cli.commands.rebalance.rebalance:rebalance",
    "record": "bellwether.cli.commands.recording.record:record",
    "release": "bellwether.cli.commands.leadership.demote:release",
    "replay": "bellwether.cli.commands.recording.replay:replay",
    "resume": "bellwether.cli.commands.leadership.suspend:resume",
    "sample": "bellwether.cli.commands.rebalance.sample:sample",
    "sidecar-webhook": "bellwether.cli.commands.installation.sidecar_webhook:sidecar_webhook",
    "simulate": "bellwether.cli.commands.policies.simulate:simulate",
    "status": "bellwether.cli.commands.diagnosis.status:status",
    "supervise": "bellwether.cli.commands.probe.supervise:supervise",
    "suspend": "bellwether.cli.commands.leadership.suspend:suspend",
    "undo-record": "bellwether.cli.commands.installation.undo_record:undo_record",
    "uninstall": "bellwether.cli.commands.installation.uninstall:uninstall",
    "verify-plan": "bellwether.cli.commands.rebalance.verify_plan:verify_plan",
    "why": "bellwether.cli.commands.planning.why:why",
    "quarantine-agent": "bellwether.cli.commands.probe.probers:quarantine_agent",
}


@click.group(
    cls=LazyGroup,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "BELLWETHER"},
)
@click.version_option(__version__, prog_name="bellwether", message="%(prog)s %(version)s")
def main() -> None:
    """Manage leader placement on Apache Kafka: move leaders away from sick brokers, and back after recovery.

    Every option can also be set by an environment variable: BELLWETHER_<COMMAND>_<OPTION>.
    """
