"""``bellwether quarantine-agent``: run the quarantine agent, which pauses its broker on the operator's order.

In doubt it resumes the broker.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import structlog

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import connect
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.probe.prober import Prober
from bellwether.cli.probe.prober_process import need, reported, serve_metrics, stop_on_signals
from bellwether.cli.text_table import printed
from bellwether.core.quarantine.agent import ProcessState
from bellwether.core.settings.detection import QUARANTINE_AGENT
from bellwether.core.settings.policy import QuarantineMode
from bellwether.ports.errors import Transient
from bellwether.quarantine.agent_loop import QuarantineAgent
from bellwether.quarantine.agent_ports import BrokerProcess as BrokerProcessPort
from bellwether.quarantine.broker_process import KAFKA, BrokerProcess
from bellwether.quarantine.order_reader import BrokerOrders
from bellwether.telemetry.logs import configure


def quarantine_agent(
    policy: str | None,
    namespace: str,
    broker: int | None,
    pid: int | None,
    pattern: str | None,
    once: bool,
    metrics_port: int | None,
    log_format: Any,
    log_level: str,
) -> None:
    """Pause the broker's process while the operator orders it (spec.quarantine), and resume it."""
    configure(log_format, "warning" if once and log_level == "info" else log_level)
    with reported():
        process = BrokerProcess(pid, pattern or KAFKA)
        if once:
            state = process.state()
            printed(("PROCESS", "CAN BE PAUSED"), [(str(state), "yes" if state is ProcessState.RUNNING else "no")])
            sys.exit(0 if state is ProcessState.RUNNING else 1)
        # First of all, because later steps may fail: the agent that paused it is dead, and crash loops back off.
        release_found(process)
        need(policy, "--policy", "the LeadershipPolicy to read settings from")
        need(broker is not None, "--broker", "the id of the broker in this pod")
        number, source = int(broker or 0), f"broker-{broker}"
        metrics = serve_metrics(metrics_port, namespace, str(policy), QUARANTINE_AGENT, source)
        stop, clock, api = stop_on_signals(), SystemClock(), connect()
        prober = Prober(api, namespace, str(policy), QUARANTINE_AGENT, source, clock, metrics)
        orders = BrokerOrders(api, namespace, str(policy), number)
        running = QuarantineAgent(
            number, source, process, orders, prober.post, clock, metrics, leads=prober.leads, ending=stop
        )

        def follow(found: LeadershipPolicy | None) -> bool:
            settings = found.policy().quarantine if found is not None else None
            running.configure(settings)
            return settings is not None and settings.mode is QuarantineMode.ENABLED

        running.start()
        try:
            prober.run(running, follow, stop)
        finally:
            running.stop()


def release_found(process: BrokerProcessPort) -> None:
    """Resume a broker that is paused; on failure the agent's loop retries."""
    with suppress(Transient):
        if process.state() is ProcessState.STOPPED:
            process.release()
            structlog.get_logger(__name__).warning("broker_released", reason="the broker was paused without an order")
