"""``bellwether quarantine-agent``: run the quarantine agent, which holds its broker on the operator's order.

In doubt it releases the broker.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from bellwether.adapters.files.meta_properties import read_broker
from bellwether.cli import exit_status
from bellwether.cli.output import print_rows
from bellwether.cli.probe.prober_options import (
    POLICY_NEEDED,
    LogDirectory,
    ProberRun,
    directories_option,
    need,
    prober_command,
)
from bellwether.core.model.quarantine_order import MAX_HOLD_SECONDS
from bellwether.core.quarantine.agent import ProcessState
from bellwether.core.settings.policy import QuarantineMode
from bellwether.core.signals import QUARANTINE_AGENT
from bellwether.ports.errors import Transient

if TYPE_CHECKING:
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.quarantine.agent_loop import BrokerProcess as BrokerProcessPort


@prober_command(
    directories_option(
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
def quarantine_agent(
    run: ProberRun,
    directories: Sequence[LogDirectory],
    lease_namespace: str | None,
    max_hold_seconds: int,
    pid: int | None,
    pattern: str | None,
) -> None:
    """Run the quarantine agent: hold the broker when ordered.

    Shuts the broker down and stops its process before it ends, while the operator renews the Lease that orders it
    (spec.quarantine of the policy), and releases it afterwards: it ends and is started again. Needs the broker's
    process namespace, its user and its group, and holds only a process whose open log directories name
    the broker of its orders. A broker that is held when the agent starts is released.
    With --once it prints the state of the process.
    """
    from bellwether.adapters.kubernetes.objects.quarantine_orders import BrokerOrders
    from bellwether.quarantine.agent_loop import QuarantineAgent
    from bellwether.quarantine.broker_process import KAFKA, BrokerProcess

    broker_process = BrokerProcess(pid, pattern or KAFKA)
    if run.once:
        state = broker_process.state()
        holdable = state is ProcessState.RUNNING
        print_rows(("PROCESS", "CAN BE HELD"), [(str(state), "yes" if holdable else "no")], run.output)
        if not holdable and state is not ProcessState.STOPPED and (remedy := broker_process.remedy()):
            click.echo(remedy, err=True)
        sys.exit(0 if holdable else exit_status.FOUND)
    # First of all, because later steps may fail: the agent that held it is dead, and crash loops back off.
    release_found(broker_process)
    need(run.policy, "--policy", POLICY_NEEDED)
    need(lease_namespace, "--lease-namespace", "the namespace of the operator's Leases, which has the orders")
    process = run.sidecar(QUARANTINE_AGENT)
    paths = [one.path.absolute() for one in directories]
    identity = process.identify((lambda: read_broker(paths)) if paths else broker_process.identify)
    if identity is None:
        return
    number, source = identity.broker, f"broker-{identity.broker}"
    broker_process.expect(number)  # of itself the directory does not prove whose process is found
    of_broker = process.prober(source, identity, "its process")
    api, prober = of_broker.secrets.api, of_broker.prober
    orders = BrokerOrders(api, str(lease_namespace), of_broker.secrets.namespace, str(run.policy), number)
    running = QuarantineAgent(
        number,
        source,
        broker_process,
        orders,
        prober.post,
        of_broker.clock,
        of_broker.metrics,
        leads=prober.leads,
        ending=process.stop,
        max_hold_seconds=max_hold_seconds,
    )

    def follow(found: LeadershipPolicy | None) -> bool:
        settings = found.policy().quarantine if found is not None else None
        running.configure(settings)
        return settings is not None and settings.mode is QuarantineMode.ENABLED

    running.start()
    of_broker.run(running, follow)


def release_found(process: BrokerProcessPort) -> None:
    """Release a broker that is held; on failure the agent's loop retries."""
    import structlog

    with suppress(Transient):
        if process.state() is ProcessState.STOPPED:
            process.release()
            structlog.get_logger(__name__).warning("broker_released", reason="the broker was held without an order")
