"""The root of the command line. Each verb lives in a file of its own and is imported only when it is asked for."""

from __future__ import annotations

import click

from bellwether import __version__
from bellwether.cli.verbs import Verbs

# verb -> module:command
VERBS = {
    "check": "bellwether.cli.check:check",
    "crds": "bellwether.cli.crds:crds",
    "demote": "bellwether.cli.demote:demote",
    "doctor": "bellwether.cli.doctor:doctor",
    "drain": "bellwether.cli.drain:drain",
    "explain": "bellwether.cli.explain:explain",
    "history": "bellwether.cli.history:history",
    "operator": "bellwether.cli.operate:operator",
    "plan": "bellwether.cli.plan:plan",
    "probe": "bellwether.cli.probe:probe",
    "promote": "bellwether.cli.demote:promote",
    "rebalance": "bellwether.cli.rebalance:rebalance",
    "record": "bellwether.cli.record:record",
    "release": "bellwether.cli.demote:release",
    "replay": "bellwether.cli.replay:replay",
    "sample": "bellwether.cli.sample:sample",
    "undo-record": "bellwether.cli.undorecord:undo_record",
    "uninstall": "bellwether.cli.uninstall:uninstall",
    "verify-plan": "bellwether.cli.verifyplan:verify_plan",
    "warden": "bellwether.cli.warden:warden",
}


@click.group(
    cls=Verbs, verbs=VERBS, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "BELLWETHER"}
)
@click.version_option(__version__, prog_name="bellwether", message="%(prog)s %(version)s")
def main() -> None:
    """Move leadership away from sick Apache Kafka brokers, and back when they are well.

    Every option can also be set in the environment: BELLWETHER_<VERB>_<OPTION>.
    """
