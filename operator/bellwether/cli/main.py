"""Root of the command line: commands and their modules. A command's implementation is imported when it runs."""

from __future__ import annotations

import os

import click

from bellwether import __version__, documentation
from bellwether.cli.lazy_group import LazyGroup

# group -> command -> module:object; the load side has its own, in an entry point group
GROUPS = {
    "Status and diagnosis": {
        "status": "bellwether.cli.diagnosis.status:status",
        "explain": "bellwether.cli.diagnosis.explain:explain",
        "why": "bellwether.cli.planning.why:why",
        "plan": "bellwether.cli.planning.plan:plan",
        "history": "bellwether.cli.diagnosis.history:history",
        "doctor": "bellwether.cli.diagnosis.doctor:doctor",
        "check": "bellwether.cli.diagnosis.check:check",
    },
    "Moving leaders": {
        "drain": "bellwether.cli.leadership.drain:drain",
        "demote": "bellwether.cli.leadership.demote:demote",
        "promote": "bellwether.cli.leadership.demote:promote",
        "release": "bellwether.cli.leadership.demote:release",
        "elect": "bellwether.cli.planning.elect:elect",
        "suspend": "bellwether.cli.leadership.suspend:suspend",
        "resume": "bellwether.cli.leadership.suspend:resume",
    },
    "Load balancing": "bellwether.verbs",
    "Policy files and traces": {
        "lint": "bellwether.cli.policies.lint:lint",
        "diff": "bellwether.cli.policies.diff:diff",
        "simulate": "bellwether.cli.policies.simulate:simulate",
        "record": "bellwether.cli.recording.record:record",
        "replay": "bellwether.cli.recording.replay:replay",
    },
    "Installation": {
        "crds": "bellwether.cli.installation.crds:crds",
        "undo-record": "bellwether.cli.installation.undo_record:undo_record",
        "uninstall": "bellwether.cli.installation.uninstall:uninstall",
    },
    "Daemons": {
        "operator": "bellwether.cli.installation.operate:operator",
        "probe": "bellwether.cli.probe:probe",
        "quarantine-agent": "bellwether.cli.probe.quarantine_agent:quarantine_agent",
        "sidecar-webhook": "bellwether.cli.installation.sidecar_webhook:sidecar_webhook",
        "supervise": "bellwether.cli.probe.supervise:supervise",
    },
}


def _docs_url(_context: click.Context, _parameter: click.Parameter, url: str | None) -> None:
    if url and not url.startswith(("http://", "https://")):
        raise click.BadParameter(f"{url!r} is not an address that begins with https:// or http://")
    if url:
        os.environ[documentation.VARIABLE] = url


@click.group(
    cls=LazyGroup,
    groups=GROUPS,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "BELLWETHER"},
)
@click.version_option(__version__, prog_name="bellwether", message="%(prog)s %(version)s")
@click.option(
    "--docs-url",
    metavar="URL",
    envvar=documentation.VARIABLE,
    show_envvar=True,
    expose_value=False,
    callback=_docs_url,
    help="Site of the documentation that messages link to.  [default: that of the repository]",
)
def main() -> None:
    """Manage leader placement on Apache Kafka: move leaders away from sick brokers, and back after recovery.

    Every option can also be set by an environment variable: BELLWETHER_<COMMAND>_<OPTION>.
    """
