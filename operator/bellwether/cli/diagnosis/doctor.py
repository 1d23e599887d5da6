"""``bellwether doctor``: report partitions at risk, the effect on clients, and the remedies.

In: a Kafka cluster or a policy, and optionally a store of samples. Out: the causes with their remedies and commands,
and single partitions where they are asked for, as text or a document; the exit status is the severity. Read-only except
for ``--unclean-election``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.cli import exit_status
from bellwether.cli.diagnosis import doctor_output
from bellwether.cli.diagnosis.cluster_examination import Examination, ExaminedCluster, Examiner, Samples, no_samples
from bellwether.cli.diagnosis.doctor_output import SHOWN
from bellwether.cli.kafka_target import BOOTSTRAP, KafkaTarget, addresses, kafka_options
from bellwether.cli.kubernetes_target import Target, policy_options
from bellwether.cli.offline.unclean_election import NoLeaderElected, Refused, elect_uncleanly
from bellwether.cli.option_lists import topic_partition
from bellwether.cli.output import OUTPUT, print_document
from bellwether.core.doctor.remediation import CommandOptions
from bellwether.core.doctor.risks import MIN_ISR, OFFLINE
from bellwether.core.doctor.unhealthy_leaders import QuarantineCheck, slow_followers, unhealthy_leaders
from bellwether.core.doctor.unwatched_listeners import LISTENER_SETTINGS, ListenerCheck, check_listeners
from bellwether.core.model.cluster import TopicPartition
from bellwether.kafka_connection import join_address
from bellwether.ports.errors import BellwetherError
from bellwether.ports.kafka import ConfigReader
from bellwether.ports.rebalance import load_side

if TYPE_CHECKING:
    from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
    from bellwether.adapters.kafka.unclean_elections import KafkaUnclean


@click.command()
@policy_options
@kafka_options
@click.option(
    "--topic",
    "topics",
    multiple=True,
    help=f"Examine only this topic, and show its {SHOWN} worst partitions one by one; repeatable.",
)
@click.option("--all", "everything", is_flag=True, help="Show every partition at risk, one by one.")
@click.option("--store", "uri", metavar="URI", help="Store of `bellwether sample`; used to estimate data loss.")
@OUTPUT
@click.option(
    "--unclean-election",
    "lossy",
    metavar="TOPIC-PARTITION",
    type=topic_partition,
    help="Elect an out-of-sync replica as leader of this partition; records are lost. Shows the expected loss first;"
    " requires --accept-loss.",
)
@click.option("--accept-loss", is_flag=True, help="Accept the data loss; asks for confirmation by name.")
def doctor(
    target: Target,
    topics: tuple[str, ...],
    everything: bool,
    uri: str | None,
    output: str,
    lossy: TopicPartition | None,
    accept_loss: bool,
    kafka: KafkaTarget,
) -> None:
    """Report partitions at risk and the remedies.

    Examines the Kafka cluster of the policy with its addresses and Secrets, or that of --bootstrap; both: the policy's
    at other addresses. Reads the cluster's metadata, contacts every broker, and classifies every partition. For each
    cause it reports how many partitions are at risk, the effect on clients, what is safe to do, and the remedies with
    their cost. With a policy it also reports the leaders that the policy judges Sick or Down: Kafka lists them as
    alive, and clients do not reach them or find them slow; and slow brokers in the ISR, for which acks=all waits.

    \b
    Exit status:
      0  no partition is at risk, no unhealthy broker leads one, and acks=all
         waits for no slow broker
      1  the cluster could not be examined
      3  an unclean election was refused, or has not produced a leader
      4  partitions are at risk, led by an unhealthy broker or held back by a slow
         one; each has a leader
      5  a partition has no leader

    With --unclean-election it elects an out-of-sync replica as leader of one partition that has no eligible leader;
    records are lost. No other command and no controller of Bellwether does this.
    """
    if accept_loss and not lossy:
        raise click.UsageError("--accept-loss requires --unclean-election TOPIC-PARTITION")
    if lossy and output != "table":
        raise click.UsageError("--unclean-election is interactive: use it without --output")
    try:
        with ExitStack() as opened:
            own = kafka.servers and not target.policy
            cluster = ExaminedCluster(kafka.connection()) if own else _of_policy(opened, target, kafka)
            from bellwether.adapters.kafka.connection.broker_pool import MANUAL_LIMITS, BrokerPool

            nodes = BrokerPool(cluster.connection, MANUAL_LIMITS)
            store = load_side().samples(uri) if uri else None
            tools = replace(_tools(cluster, kafka), store=_again(uri, store.printable) if uri and store else "")
            examine = _examination(cluster, nodes, store.last_samples if store is not None else no_samples)
            if lossy is not None:
                from bellwether.adapters.kafka.unclean_elections import KafkaUnclean

                _elect(lossy, examine, KafkaUnclean(nodes), tools, accepted=accept_loss)
                return
            found = examine(topics, forecast=True)
    except (Refused, NoLeaderElected) as error:
        click.echo(str(error), err=True)
        raise click.exceptions.Exit(exit_status.BLOCKED) from None
    at_risk = found.risk_summary.at_risk
    if output != "table":
        print_document(doctor_output.document(found, tools), output)
    else:
        single = at_risk if everything else at_risk[:SHOWN] if topics else ()
        doctor_output.print_report(found, single, tools)
    raise click.exceptions.Exit(status(found))


def _of_policy(opened: ExitStack, target: Target, kafka: KafkaTarget) -> ExaminedCluster:
    from bellwether.cli.diagnosis.policy_cluster import policy_cluster

    if kafka.command_config is not None:
        text = f"--command-config requires {BOOTSTRAP}, without --policy: TLS and SASL settings of a policy are its own"
        raise click.UsageError(text)
    return opened.enter_context(policy_cluster(target, addresses(kafka.bootstrap)))


def _examination(of: ExaminedCluster, nodes: BrokerPool, samples: Samples) -> Callable[..., Examination]:
    from bellwether.adapters.kafka.brokers.log_ends import LogEnds
    from bellwether.adapters.kafka.config_reader import KafkaConfigs
    from bellwether.adapters.kafka.metadata_reader import KafkaReader

    configs = KafkaConfigs(nodes)
    examiner = Examiner(KafkaReader(nodes), configs, LogEnds(of.connection), samples)

    def examine(topics: Collection[str], *, forecast: bool = False) -> Examination:
        found = examiner.examine(topics, forecast=forecast)
        of.check(found.cluster.cluster_id)
        found = replace(found, troubles=(*of.notes, *found.troubles))
        if forecast and of.quarantine is not None and (of.quarantine.enabled or found.slow_disk is not None):
            found = replace(found, quarantine=_quarantine(of.quarantine, found, nodes))
        if forecast and of.listeners:
            found = replace(found, listeners=_listeners(of.listeners, found, configs))
        if of.judged is None:
            return found
        slow = slow_followers(found.cluster, of.judged)
        return replace(found, unhealthy=unhealthy_leaders(found.cluster, of.judged), slow=slow)

    return examine


def _quarantine(check: QuarantineCheck, found: Examination, nodes: BrokerPool) -> QuarantineCheck:
    """What is missing, with what the policy's Kafka user may not read."""
    from bellwether.adapters.kafka.fault_tolerance_reader import KafkaFaultTolerance

    if not check.enabled:
        return check
    missing = list(check.missing)
    if unknown := {p.topic for p in found.cluster.partitions} - found.facts.floors.keys():
        text = f"{MIN_ISR} of {len(unknown)} topics is unknown: allow DescribeConfigs on Topic * to the policy's user"
        missing.append(text)
    if problem := KafkaFaultTolerance(nodes).margins((), (), {}).problem:
        missing.append(f"the controller quorum is unknown: {problem}")
    return replace(check, missing=tuple(missing))


def _listeners(watched: tuple[str, ...], found: Examination, configs: ConfigReader) -> ListenerCheck:
    """Which listeners are not watched, by the settings of the brokers that answer."""
    live, problem = found.cluster.live.difference(found.silent), ""
    settings: Mapping[int, Mapping[str, str]] = {}
    try:
        settings = configs.broker_configs(live, LISTENER_SETTINGS)
    except BellwetherError as error:
        problem = str(error)
    brokers = {broker: found.cluster.brokers[broker] for broker in live}
    addresses = {number: join_address(b.host, b.port) for number, b in brokers.items() if b.host and b.port > 0}
    return check_listeners(settings, watched, addresses, live, problem)


def _elect(
    chosen: TopicPartition,
    examine: Callable[..., Examination],
    elections: KafkaUnclean,
    tools: CommandOptions,
    *,
    accepted: bool,
) -> None:
    """Run one unclean election. Raises Refused, NoLeaderElected, and the errors of the ports."""
    after = elect_uncleanly(
        chosen, lambda: examine([chosen.topic]), elections, SystemClock(), click.echo, _ask, accepted=accepted
    )
    diagnosis = after.of(chosen)
    click.echo(f"{chosen}: leader is now broker {diagnosis.partition.leader}; class {diagnosis.risk}")
    doctor_output.print_causes(after, tools, chosen)


def status(found: Examination) -> int:
    """Exit status: by the worst partition, then by whether there is an unhealthy leader or a slow follower."""
    at_risk = found.risk_summary.at_risk
    if any(d.risk in OFFLINE for d in at_risk):
        return exit_status.OFFLINE
    return exit_status.FOUND if at_risk or found.unhealthy or found.slow or found.cluster.incomplete else 0


def _ask(question: str) -> str:
    """The user's answer; empty if there is none."""
    try:
        return str(click.prompt(question, default="", show_default=False))
    except click.Abort:
        return ""


def _again(uri: str, printable: str) -> str:
    """Option --store for a printed command; a URI that may contain a secret is replaced with a placeholder."""
    return f" --store {shlex.quote(uri) if printable == uri else 'URI'}"


def _tools(cluster: ExaminedCluster, kafka: KafkaTarget) -> CommandOptions:
    """Connection options for the printed commands, from the options of this command."""
    protocol, servers = cluster.connection.security.protocol, ",".join(cluster.connection.bootstrap)
    file = kafka.command_config or ("client.properties" if protocol.tls or protocol.sasl else "")
    config = shlex.quote(str(file)) if file else ""
    if not cluster.policy:
        return CommandOptions(servers, config, f" --command-config {config}" if config else "")
    others = ",".join(addresses(kafka.bootstrap))
    policy = f" --policy {shlex.quote(cluster.policy)} --namespace {cluster.namespace}"
    return CommandOptions(servers, config, f" --bootstrap {shlex.quote(others)}" if others else "", policy=policy)
