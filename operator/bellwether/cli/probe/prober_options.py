"""Options and errors that the commands of ``bellwether probe`` and ``bellwether quarantine-agent`` share."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellwether.cli.kafka_target import KafkaTarget, kafka_options
from bellwether.cli.kubernetes_target import Target, connect, namespaced
from bellwether.cli.option_lists import Option, with_options
from bellwether.cli.output import OUTPUT
from bellwether.cli.process_options import LOG_FORMAT, LOG_LEVEL, METRICS_PORT, selecting
from bellwether.core.settings.detection import Detection
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import BellwetherError

if TYPE_CHECKING:
    from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.probes.runtime.prober_process import ProberProcess, SidecarProcess
    from bellwether.probes.runtime.watched_policies import Selection

POLICY_NEEDED = "the LeadershipPolicy to read settings from"
PORT = click.IntRange(1, 65535)
SIDECAR_SOURCE = click.option("--source", metavar="NAME", help="Stable name of this prober.  [default: broker-<ID>]")

# A part of the prober's source, which is part of the name of its Lease.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def _of_one_policy(command: Callable[..., Any]) -> Callable[..., Any]:
    policy = click.option("--policy", metavar="NAME", help="LeadershipPolicy to read settings from and report to.")
    return policy(namespaced(command))


def shared_options(command: Callable[..., Any], *, sidecar: bool = False) -> Callable[..., Any]:
    """Add the options that every prober has. A sidecar serves one policy, any other prober several."""
    return with_options(
        _of_one_policy if sidecar else selecting,
        click.option(
            "--once", is_flag=True, help="Measure once, print a table, report nothing; exit status 4 on a failure."
        ),
        OUTPUT,
        METRICS_PORT,
        LOG_FORMAT,
        LOG_LEVEL,
    )(command)


def directories_option(help_: str) -> Option:
    """The repeatable option ``--directory``."""
    return click.option(
        "--directory", "directories", type=log_directory, metavar="[NAME=]PATH", multiple=True, help=help_
    )


@dataclass(frozen=True, kw_only=True)
class ProberRun:
    """What the shared options say: which policies, once or until it is stopped. A sidecar has no ``selection``.

    ``kafka``: the cluster to measure once without a policy, if one is named.
    """

    policy: str | None
    target: Target
    once: bool
    output: str
    metrics_port: int | None
    selection: Selection | None = None
    kafka: Connection | None = None

    def need_policy(self) -> None:
        """Raise UsageError if ``--once`` has neither a policy nor a cluster."""
        need(self.policy or self.kafka or not self.once, "--policy", f"{POLICY_NEEDED} (or --bootstrap)")

    def read_policy(self) -> tuple[LeadershipPolicy, SecretReader]:
        """The policy, and the reader of its Secrets, whose files last as long as it does."""
        from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
        from bellwether.probes.runtime.prober import read_policy

        api, namespace = connect(self.target)
        return read_policy(api, namespace, str(self.policy)), SecretReader(api, namespace, destinations=ANYWHERE)

    def detection(self) -> Detection:
        """Settings of the policy, or the defaults without one."""
        return self.read_policy()[0].policy().detection if self.policy else Detection()

    def process(self, signal_type: str, option: str, source: str | None, *, many: bool = False) -> ProberProcess:
        """The process of a prober, named by this option. Raises UsageError without it."""
        from bellwether.probes.runtime.prober_process import ProberProcess

        place = "vantage" if option == "--vantage" else "location"
        need(source, option, f"a stable name of this {place}, such as eu-west-1a")
        assert self.selection is not None  # noqa: S101 - only a sidecar has none
        return ProberProcess.begin(
            connect(self.target), self.selection, signal_type, str(source), self.metrics_port, many=many
        )

    def sidecar(self, signal_type: str) -> SidecarProcess:
        """The process of a sidecar. Raises UsageError without a policy."""
        from bellwether.probes.runtime.prober_process import SidecarProcess

        need(self.policy, "--policy", POLICY_NEEDED)
        return SidecarProcess.begin(connect(self.target), str(self.policy), signal_type, self.metrics_port)


def prober_command(
    *options: Option, name: str | None = None, sidecar: bool = False, kafka: bool = False
) -> Callable[[Callable[..., None]], click.Command]:
    """Command with the shared options and these; the decorated function gets the shared ones as ``ProberRun``.

    ``kafka``: with ``--once`` it can measure a Kafka cluster without Kubernetes.
    """

    def command_of(work: Callable[..., None]) -> click.Command:
        @functools.wraps(work)
        def run(once: bool, log_format: Any, log_level: str, metrics_port: int | None, **values: Any) -> None:
            from bellwether.telemetry.logs import configure

            configure(log_format, "warning" if once and log_level == "info" else log_level)
            given = {name: values.pop(name) for name in ("policy", "target", "output", "selection") if name in values}
            cluster: KafkaTarget = values.pop("kafka", KafkaTarget())
            named = cluster != KafkaTarget()
            if named and (given["policy"] or not once):
                raise click.UsageError(
                    "--bootstrap and --command-config require --once, without --policy: signals can be reported to"
                    " Kubernetes only."
                )
            with reported():
                connection = cluster.connection() if named else None
                work(ProberRun(once=once, metrics_port=metrics_port, kafka=connection, **given), **values)

        command = shared_options(with_options(*options, *([kafka_options] if kafka else []))(run), sidecar=sidecar)
        return click.command(name or work.__name__.replace("_", "-"))(command)

    return command_of


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A log directory of a broker. ``name`` distinguishes it from the broker's others; empty if it has none."""

    path: Path
    name: str = ""


def log_directory(text: str) -> LogDirectory:
    """``/var/lib/kafka/data`` or ``data-0=/var/lib/kafka/data-0``; the name becomes a part of the source."""
    name, separator, path = text.partition("=")
    if not separator or "/" in name:  # a path may have an equals sign
        name, path = "", text
    elif not _NAME.fullmatch(name):
        raise click.BadParameter(
            f"{text!r}: the name {name!r} must have 1 to 63 letters, digits, '-', '_' or '.', and start and end"
            " with a letter or digit: use NAME=PATH such as data-0=/var/lib/kafka/data-0"
        )
    if not path:
        raise click.BadParameter(f"{text!r} has no path: use NAME=PATH such as data-0=/var/lib/kafka/data-0")
    return LogDirectory(Path(path), name)


def need(value: object, option: str, what: str) -> None:
    """Raise UsageError if an option is missing."""
    if not value:
        raise click.UsageError(f"Missing option '{option}': {what}.")


@contextmanager
def reported() -> Iterator[None]:
    """Turn errors of the ports into one line and exit status 1."""
    from bellwether.probes.runtime.prober import ProbeDied

    try:
        yield
    except (BellwetherError, ProbeDied, ValueError) as error:
        raise click.ClickException(str(error)) from error
