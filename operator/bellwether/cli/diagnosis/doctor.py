"""``bellwether doctor``: which partitions are at risk, what clients see, and what a person can do about it.

In: a Kafka cluster, and a store of samples if there is one. Out: a summary by class, the worst partitions with advice
and commands, as text or JSON; the exit status tells how bad it is. Reads only, but for ``--unclean-election``.
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
from bellwether.cli.offline.unclean_election import Refused, Unled, elect_uncleanly
from bellwether.core.doctor.remediation import CommandOptions
from bellwether.core.doctor.risks import OFFLINE, LogEndSample
from bellwether.core.model.cluster import PartitionKey, TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import BellwetherError

AT_RISK, OFFLINE_STATUS, UNSEEN = 1, 3, 4
"""Exit statuses: something is at risk, something can be neither read nor written, the cluster could not be examined."""


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
    """List the partitions at risk, what clients see, what is safe, and what costs what to mend."""
    if accept_loss and not lossy:
        raise click.UsageError("--accept-loss goes with --unclean-election TOPIC-PARTITION")
    if lossy and output != "text":
        raise click.UsageError("--unclean-election asks and is answered: it has no --output json")
    if not kafka["bootstrap"]:
        raise click.UsageError("Name the cluster: --bootstrap HOST:PORT, with the TLS and SASL options that it needs.")
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
            stands = after.of(chosen)
            click.echo(f"{chosen} is led by broker {stands.partition.leader} now: {stands.risk}")
            doctor_output.advised(stands, tools, elr=after.cluster.elr_enabled)
            return
        found = examiner.examine(topics)
    except (Refused, Unled) as error:
        click.echo(str(error), err=True)
        raise click.exceptions.Exit(OFFLINE_STATUS) from None
    except BellwetherError as error:
        raise Unseen(str(error)) from None
    shown = found.risk_summary.at_risk if everything else found.risk_summary.at_risk[:SHOWN]
    if output == "json":
        click.echo(json.dumps(doctor_output.document(found, shown, tools), indent=1))
    else:
        doctor_output.told(found, shown, tools)
    raise click.exceptions.Exit(status(d.risk in OFFLINE for d in found.risk_summary.at_risk))


def status(offline: Any) -> int:
    """The exit status: ``offline`` tells of each partition at risk whether it can be neither read nor written."""
    told = list(offline)
    return OFFLINE_STATUS if any(told) else AT_RISK if told else 0


def _ask(question: str) -> str:
    """What the person answers; nothing where nobody does."""
    try:
        return str(click.prompt(question, default="", show_default=False))
    except click.Abort:
        return ""


def _partition(text: str) -> TopicPartition:
    topic, dash, number = text.rpartition("-")
    if not dash or not topic or not number.isdecimal():
        raise click.UsageError(f"--unclean-election {text!r}: a topic and a partition, as in orders-0")
    return TopicPartition(topic, int(number))


def _samples(uri: str | None) -> Samples:
    if uri is None:
        return no_samples
    from bellwether.adapters.store.filesystems import Store  # noqa: PLC0415 - Arrow is for --store alone
    from bellwether.adapters.store.samples.last_samples import last_samples  # noqa: PLC0415

    store = Store.open(uri)

    def look(cluster_id: str, wanted: Collection[PartitionKey]) -> Mapping[PartitionKey, LogEndSample]:
        return last_samples(store, cluster_id, wanted)

    return look


def _again(uri: str | None) -> str:
    """The option that names the store, for a printed command; what may hold a secret is left to be filled in."""
    if not uri:
        return ""
    return f" --store {shlex.quote(uri) if str(Redacted(uri)) == uri else 'URI'}"


def _tools(connection: Connection, kafka: Mapping[str, Any]) -> CommandOptions:
    """How the commands that are printed reach the cluster: ours with the options that were given."""
    given = [
        f" --{name.replace('_', '-')}" + ("" if value is True else f" {shlex.quote(str(value))}")
        for name, value in kafka.items()
        if value and name != "bootstrap"
    ]
    secured = connection.security.protocol.tls or connection.security.protocol.sasl
    return CommandOptions(",".join(connection.bootstrap), "client.properties" if secured else "", "".join(given))
