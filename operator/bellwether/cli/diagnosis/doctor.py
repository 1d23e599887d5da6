"""``bellwether doctor``: report partitions at risk, the effect on clients, and the remedies.

In: a Kafka cluster, and optionally a store of samples. Out: a summary by class, and the worst partitions with remedies
and commands, as text or JSON; the exit status is the severity. Read-only except for ``--unclean-election``.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.admin_config_reader import AdminConfigs
from bellwether.adapters.kafka.brokers.log_ends import LogEnds
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kafka.unclean_elections import KafkaUnclean
from bellwether.adapters.store.store_uri import Redacted
from bellwether.cli.commands.diagnosis.doctor import SHOWN
from bellwether.cli.diagnosis import doctor_output
from bellwether.cli.diagnosis.cluster_examination import Examiner, Samples, no_samples
from bellwether.cli.kafka_target import connection_from
from bellwether.cli.offline.unclean_election import NoLeaderElected, Refused, elect_uncleanly
from bellwether.core.doctor.remediation import CommandOptions
from bellwether.core.doctor.risks import OFFLINE, LogEndSample
from bellwether.core.model.cluster import PartitionKey, TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import BellwetherError

AT_RISK, OFFLINE_STATUS, UNSEEN = 1, 3, 4
"""Exit statuses: partitions at risk, partitions offline, cluster could not be examined."""


class Unseen(click.ClickException):
    """The cluster could not be examined."""

    exit_code = UNSEEN


def doctor(
    topics: tuple[str, ...],
    everything: bool,
    uri: str | None,
    output: str,
    lossy: str | None,
    accept_loss: bool,
    **kafka: Any,
) -> None:
    """Report partitions at risk, or run one unclean election."""
    if accept_loss and not lossy:
        raise click.UsageError("--accept-loss requires --unclean-election TOPIC-PARTITION")
    if lossy and output != "text":
        raise click.UsageError("--unclean-election is interactive: use it without --output json")
    if not kafka["bootstrap"]:
        raise click.UsageError(
            "Missing option '--bootstrap HOST:PORT', with the TLS and SASL options that the cluster requires."
        )
    chosen = _partition(lossy) if lossy else None
    try:
        connection = connection_from(**kafka)
        nodes, clock = BrokerPool(connection), SystemClock()
        examiner = Examiner(KafkaReader(nodes), AdminConfigs(nodes), LogEnds(connection), _samples(uri))
        tools = replace(_tools(connection, kafka), store=_again(uri))
        if chosen is not None:
            after = elect_uncleanly(
                chosen,
                lambda: examiner.examine([chosen.topic]),
                KafkaUnclean(nodes),
                clock,
                click.echo,
                _ask,
                accepted=accept_loss,
            )
            diagnosis = after.of(chosen)
            click.echo(f"{chosen}: leader is now broker {diagnosis.partition.leader}; class {diagnosis.risk}")
            doctor_output.print_remedies(diagnosis, tools, elr=after.cluster.elr_enabled)
            return
        found = examiner.examine(topics)
    except (Refused, NoLeaderElected) as error:
        click.echo(str(error), err=True)
        raise click.exceptions.Exit(OFFLINE_STATUS) from None
    except BellwetherError as error:
        raise Unseen(str(error)) from None
    shown = found.risk_summary.at_risk if everything else found.risk_summary.at_risk[:SHOWN]
    if output == "json":
        click.echo(json.dumps(doctor_output.document(found, shown, tools), indent=1))
    else:
        doctor_output.print_report(found, shown, tools)
    raise click.exceptions.Exit(status(d.risk in OFFLINE for d in found.risk_summary.at_risk))


def status(offline: Any) -> int:
    """Exit status; ``offline`` has for each partition at risk whether it is offline."""
    found = list(offline)
    return OFFLINE_STATUS if any(found) else AT_RISK if found else 0


def _ask(question: str) -> str:
    """The user's answer; empty if there is none."""
    try:
        return str(click.prompt(question, default="", show_default=False))
    except click.Abort:
        return ""


def _partition(text: str) -> TopicPartition:
    topic, dash, number = text.rpartition("-")
    if not dash or not topic or not number.isdecimal():
        raise click.UsageError(f"--unclean-election {text!r} is not TOPIC-PARTITION: use a value such as orders-0")
    return TopicPartition(topic, int(number))


def _samples(uri: str | None) -> Samples:
    if uri is None:
        return no_samples
    from bellwether.adapters.store.filesystems import Store  # noqa: PLC0415 - Arrow is needed for --store only
    from bellwether.adapters.store.samples.last_samples import last_samples  # noqa: PLC0415

    store = Store.open(uri)

    def look(cluster_id: str, wanted: Collection[PartitionKey]) -> Mapping[PartitionKey, LogEndSample]:
        return last_samples(store, cluster_id, wanted)

    return look


def _again(uri: str | None) -> str:
    """Option --store for a printed command; a URI that may contain a secret is replaced with a placeholder."""
    if not uri:
        return ""
    return f" --store {shlex.quote(uri) if str(Redacted(uri)) == uri else 'URI'}"


def _tools(connection: Connection, kafka: Mapping[str, Any]) -> CommandOptions:
    """Connection options for the printed commands, from the options of this command."""
    given = [
        f" --{name.replace('_', '-')}" + ("" if value is True else f" {shlex.quote(str(value))}")
        for name, value in kafka.items()
        if value and name != "bootstrap"
    ]
    secured = connection.security.protocol.tls or connection.security.protocol.sasl
    return CommandOptions(",".join(connection.bootstrap), "client.properties" if secured else "", "".join(given))
