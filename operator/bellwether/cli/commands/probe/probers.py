"""Options and help of every command of ``bellwether probe``, and of ``bellwether quarantine-agent``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from bellwether.cli.commands.common_options import METADATA_LIMIT
from bellwether.cli.commands.kafka_options import kafka_options
from bellwether.cli.commands.probe.log_directory_option import LogDirectoryOption
from bellwether.cli.commands.probe.prober_options import shared_options
from bellwether.core.model.quarantine_order import MAX_HOLD_SECONDS

_PORT = click.IntRange(1, 65535)
_SIDECAR_SOURCE = click.option("--source", metavar="NAME", help="Stable name of this prober.  [default: broker-<ID>]")

Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def _directories(help_: str) -> Option:
    return click.option(
        "--directory", "directories", type=LogDirectoryOption(), metavar="[NAME=]PATH", multiple=True, help=help_
    )


def _bootstrap(verb: str) -> Option:
    return click.option(
        "--bootstrap",
        metavar="HOST:PORT",
        multiple=True,
        help=f"With --once: {verb} this cluster, without Kubernetes, TLS or SASL; repeatable.",
    )


def _prober(
    *options: Option, name: str | None = None, sidecar: bool = False
) -> Callable[[Callable[[], None]], click.Command]:
    """Command with the shared options and these. It configures logs and calls the function of the same name in
    ``cli.probe``, which is imported when the command runs. The decorated function has the help as its docstring.
    """

    def command_of(described: Callable[[], None]) -> click.Command:
        verb = described.__name__

        def run(once: bool, log_format: Any, log_level: str, **values: Any) -> None:
            quiet = once and log_level == "info"
            import_module("bellwether.telemetry.logs").configure(log_format, "warning" if quiet else log_level)
            getattr(import_module(f"bellwether.cli.probe.{verb}"), verb)(once=once, **values)

        run.__doc__ = described.__doc__
        command: Callable[..., Any] = run
        for option in reversed(options):
            command = option(command)
        return click.command(name or verb.replace("_", "-"))(shared_options(command, sidecar=sidecar))

    return command_of


@_prober(
    click.option("--vantage", metavar="NAME", help="Stable name of this vantage, such as eu-west-1a."),
    _bootstrap("measure"),
    click.option("--topic", metavar="NAME", help="With --bootstrap: the topic.  [default: bellwether-canary]"),
)
def canary() -> None:
    """Produce a record to every broker and fetch it.

    Measures once per second what clients at this vantage experience, through the external listener. The topic of
    detection.canary has one partition for each broker and must exist. Needs Read and Write on that topic.
    """


@_prober(
    click.option("--type", "type_", metavar="TYPE", help="Signal type of the plugin, as in detection.plugins[].type."),
    click.option("--source", metavar="NAME", help="Stable name of this location, such as eu-west-1a."),
    click.option("--list", "list_", is_flag=True, help="List the installed plugins and exit."),
    _bootstrap("measure"),
    click.option(
        "--setting",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        help="With --bootstrap: plugin setting; repeatable.",
    ),
)
def plugin() -> None:
    """Measure brokers with a plugin and report signals.

    A plugin is a signal type of another package, which is installed next to Bellwether and registers an entry point of
    the group bellwether.signals. Thresholds and settings come from detection.plugins of the policy.
    """


@_prober(click.option("--presets", is_flag=True, help="List the preset queries with their PromQL and exit."))
def prometheus() -> None:
    """Evaluate the policy's Prometheus rules and report signals.

    Queries Prometheus once per period; the rules are those of detection.prometheus. One prober is enough for all rules
    of a policy; a second replica is on standby.
    """


@_prober(
    click.option("--vantage", metavar="NAME", help="Stable name of this vantage, such as eu-west-1a."),
    click.option(
        "--no-internal",
        is_flag=True,
        help="This vantage cannot reach the internal listener: probe no control, and discover the brokers externally.",
    ),
    _bootstrap("probe"),
    click.option("--listener", help="With --bootstrap: name of the external listener.  [default: EXTERNAL]"),
)
def reachability() -> None:
    """Probe every broker at its external address.

    The internal address is probed as the control. A probe passes only if that broker answers a Kafka request: an open
    port is not enough, and neither is another broker behind the load balancer.
    """


@_prober(
    click.option(
        "--source",
        metavar="NAME",
        default="replication",
        show_default=True,
        help="Stable name of this prober; its replicas share it, and one of them reports.",
    ),
    METADATA_LIMIT,
    kafka_options,
)
def replication() -> None:
    """Measure replication lag and report slow followers.

    Compares the log end offsets of leaders and followers. One prober serves a whole cluster; it must reach every
    broker's internal listener. With --once it watches the followers that are behind until they have caught up or the
    policy's threshold has passed; with --bootstrap and the TLS and SASL options --once needs no Kubernetes.
    """


@_prober(
    _directories("Log directory of the broker, whose meta.properties names it; repeatable. Only that file is read."),
    click.option(
        "--port",
        type=_PORT,
        help="Port that the broker's external listener is bound to inside the pod (not the load balancer's port).",
    ),
    click.option(
        "--ignore",
        "ignored",
        metavar="CIDR",
        multiple=True,
        help="Ignore connections from this network, such as those of health checks; repeatable.",
    ),
    _SIDECAR_SOURCE,
    name="self",
    sidecar=True,
)
def selfcheck() -> None:
    """Check for external clients connected to a broker.

    Reads the kernel's socket table once per second, which a sidecar shares with the broker of its pod. Needs no
    privileges and sends nothing to the broker.
    """


@_prober(
    _directories(
        "Log directory of the broker, whose meta.properties names it; the prober writes two hidden files there, and"
        " reads segments. Repeatable: each of several directories needs a NAME, and its signals have the source"
        " <--source>-NAME."
    ),
    click.option(
        "--log-dir",
        metavar="PATH",
        help="With one directory: its path in the broker, if it is mounted elsewhere there.  [default: --directory]",
    ),
    _SIDECAR_SOURCE,
    sidecar=True,
)
def storage() -> None:
    """Measure write and read latency in a broker's log directories.

    Once per second it appends 4 KiB, as a broker does, syncs 4 KiB apart from that, and reads 4 KiB of an old segment
    directly from the disk. Late appends and reads are harm; slow syncs make the broker Suspect. If a broker with
    several log directories (JBOD) has all of them measured, a bad directory demotes only the partitions in it.
    """


@_prober(
    _directories(
        "Log directory of the broker in this pod, whose meta.properties names it; repeatable. Only that file is read."
        "  [default: those that the broker's process has open]"
    ),
    click.option(
        "--lease-namespace",
        metavar="NAMESPACE",
        help="Namespace of the orders: the one given to bellwether operator as --lease-namespace.",
    ),
    click.option(
        "--max-hold-seconds",
        type=click.IntRange(1, 86400),
        default=MAX_HOLD_SECONDS,
        show_default=True,
        help="Longest hold in seconds, whatever an order says.",
    ),
    click.option("--pid", type=click.IntRange(1), help="Process id of the broker.  [default: found with --process]"),
    click.option(
        "--process",
        "pattern",
        metavar="REGEX",
        help="Regular expression that matches the broker's command line (arguments end with a zero byte)."
        "  [default: java kafka.Kafka]",
    ),
    sidecar=True,
)
def quarantine_agent() -> None:
    """Run the quarantine agent: hold the broker when ordered.

    Shuts the broker down and stops its process before it ends, while the operator renews the Lease that orders it
    (spec.quarantine of the policy), and releases it afterwards: it ends and is started again. Needs the broker's
    process namespace, its user and its group, and holds only a process whose open log directories name
    the broker of its orders. A broker that is held when the agent starts is released.
    With --once it prints the state of the process.
    """
