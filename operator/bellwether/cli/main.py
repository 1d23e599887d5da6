"""Root of the command line: commands and their modules. A command's implementation is imported when it runs."""

from __future__ import annotations

import click

from bellwether import __version__
from bellwether.cli.lazy_group import LazyGroup

# command -> module:object
VERBS = {
    "approve": "bellwether.cli.rebalance.approve:approve",
    "check": "bellwether.cli.diagnosis.check:check",
    "crds": "bellwether.cli.installation.crds:crds",
    "demote": "bellwether.cli.leadership.demote:demote",
    "diff": "bellwether.cli.policies.diff:diff",
    "doctor": "bellwether.cli.diagnosis.doctor:doctor",
    "drain": "bellwether.cli.leadership.drain:drain",
    "elect": "bellwether.cli.planning.elect:elect",
    "explain": "bellwether.cli.diagnosis.explain:explain",
    "history": "bellwether.cli.diagnosis.history:history",
    "lint": "bellwether.cli.policies.lint:lint",
    "operator": "bellwether.cli.installation.operate:operator",
    "plan": "bellwether.cli.planning.plan:plan",
    "probe": "bellwether.cli.probe:probe",
    "promote": "bellwether.cli.leadership.demote:promote",
    "rebalance": "bellwether.cli.rebalance.rebalance:rebalance",
    "record": "bellwether.cli.recording.record:record",
    "release": "bellwether.cli.leadership.demote:release",
    "replay": "bellwether.cli.recording.replay:replay",
    "resume": "bellwether.cli.leadership.suspend:resume",
    "sample": "bellwether.cli.rebalance.sample:sample",
    "sidecar-webhook": "bellwether.cli.installation.sidecar_webhook:sidecar_webhook",
    "simulate": "bellwether.cli.policies.simulate:simulate",
    "status": "bellwether.cli.diagnosis.status:status",
    "supervise": "bellwether.cli.probe.supervise:supervise",
    "suspend": "bellwether.cli.leadership.suspend:suspend",
    "undo-record": "bellwether.cli.installation.undo_record:undo_record",
    "uninstall": "bellwether.cli.installation.uninstall:uninstall",
    "verify-plan": "bellwether.cli.rebalance.verify_plan:verify_plan",
    "why": "bellwether.cli.planning.why:why",
    "quarantine-agent": "bellwether.cli.probe.quarantine_agent:quarantine_agent",
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
