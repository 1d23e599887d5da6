"""The root of the command line: which verb is where. A verb's work is imported when it runs, not for its help."""

from __future__ import annotations

import click

from bellwether import __version__
from bellwether.cli.verbs import Verbs

# verb -> module:command
VERBS = {
    "check": "bellwether.cli.commands.check:check",
    "crds": "bellwether.cli.commands.crds:crds",
    "demote": "bellwether.cli.commands.demote:demote",
    "doctor": "bellwether.cli.commands.doctor:doctor",
    "drain": "bellwether.cli.commands.drain:drain",
    "explain": "bellwether.cli.commands.explain:explain",
    "history": "bellwether.cli.commands.history:history",
    "operator": "bellwether.cli.commands.operate:operator",
    "plan": "bellwether.cli.commands.plan:plan",
    "probe": "bellwether.cli.commands.probe:probe",
    "promote": "bellwether.cli.commands.demote:promote",
    "rebalance": "bellwether.cli.commands.rebalance:rebalance",
    "record": "bellwether.cli.commands.record:record",
    "release": "bellwether.cli.commands.demote:release",
    "replay": "bellwether.cli.commands.replay:replay",
    "sample": "bellwether.cli.commands.sample:sample",
    "undo-record": "bellwether.cli.commands.undorecord:undo_record",
    "uninstall": "bellwether.cli.commands.uninstall:uninstall",
    "verify-plan": "bellwether.cli.commands.verifyplan:verify_plan",
    "warden": "bellwether.cli.commands.warden:warden",
}


@click.group(
    cls=Verbs, verbs=VERBS, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "BELLWETHER"}
)
@click.version_option(__version__, prog_name="bellwether", message="%(prog)s %(version)s")
def main() -> None:
    """Move leadership away from sick Apache Kafka brokers, and back when they are well.

    Every option can also be set in the environment: BELLWETHER_<VERB>_<OPTION>.
    """
