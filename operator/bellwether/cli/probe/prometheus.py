"""``bellwether probe prometheus``: evaluate the Prometheus rules of a policy's SignalSources and report signals."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

import click

from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.api.v1alpha1.spec.query_presets import PRESETS, Preset, Scope
from bellwether.cli.kubernetes_target import connect
from bellwether.cli.probe.prober_options import ProberRun, need, prober_command
from bellwether.core.listing import NAMED, few
from bellwether.core.signals import SignalType
from bellwether.destinations import ANYWHERE
from bellwether.ports.errors import Terminal

if TYPE_CHECKING:
    from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
    from bellwether.adapters.prometheus.query_client import Access, PrometheusClient
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.api.v1alpha1.signal_source import SignalSource, UsedSource
    from bellwether.core.settings.source_settings import PrometheusRule
    from bellwether.probes.prometheus.prometheus_probe import QueryClient
    from bellwether.probes.runtime.prober_process import PolicyProber

# Names the prober in its Lease; the source of each signal is its rule.
SOURCE = "rules"
BROKERS_SECONDS = 10.0


@prober_command(click.option("--presets", is_flag=True, help="List the preset queries with their PromQL and exit."))
def prometheus(run: ProberRun, presets: bool) -> None:
    """Evaluate the policy's Prometheus rules and report signals.

    Queries Prometheus once per period; the rules are those of the SignalSources that the policy names. One prober is
    enough for all rules of a policy; a second replica is on standby.
    """
    if presets:
        click.echo("\n\n".join(described(preset) for preset in PRESETS))
        return
    need(run.policy or not run.once, "--policy", "the LeadershipPolicy to read rules from (or --presets)")
    if run.once:
        sys.exit(_once(*connect(run.target), str(run.policy), run.output))
    run.process(SignalType.PROMETHEUS, "--source", SOURCE, many=True).run(_run)


def described(preset: Preset) -> str:
    """Text of one preset: meaning, initial settings, and the query for each exporter."""
    rule = f"comparison: {preset.comparison}, threshold: '{preset.threshold}'"
    rule += f", peerRatio: {preset.peer_ratio}" if preset.peer_ratio else ""
    rule += ", leadersOnly: true" if preset.leaders_only else ""
    lines = [f"{preset.name} ({preset.unit})", *textwrap.wrap(preset.sentence, 110), f"start with {rule}"]
    lines += textwrap.wrap(f"needs {preset.needs}", 110) if preset.needs else []
    lines += [f"{name}: {preset.query(Scope(), name)}" for name, _ in preset.dialects]
    return "\n  ".join(lines)


class _Unable:
    """Client of a Prometheus that cannot be queried, for example without its Secret; each query raises the error."""

    def __init__(self, error: Terminal) -> None:
        self._error = error

    def ask(self, *_: object) -> NoReturn:
        """Raise Terminal."""
        raise Terminal(f"cannot be queried: {self._error}")

    check_alerts = ask


def _once(api: KubernetesClient, namespace: str, policy: str, output: str) -> int:
    """Evaluate every rule once; returns the exit status."""
    from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
    from bellwether.adapters.kubernetes.objects.signal_sources import with_sources
    from bellwether.cli.probe import measurement_table
    from bellwether.probes.runtime.prober import hosts_of, read_policy

    found = with_sources(api, read_policy(api, namespace, policy)).sources
    if not any(one.rules for one in found.used):
        why = str(found) or "it names none with prometheus: add one to spec.detection.signalSources"
        raise Terminal(f"policy {namespace}/{policy} has no SignalSource to query: {why}")
    known = hosts_of(api, namespace, policy) or {}
    # The reader removes its files, such as the CAs, at its end.
    with SecretReader(api, namespace, destinations=ANYWHERE) as secrets:
        return measurement_table.prometheus(_Clients(secrets).asked(found.used), known, output)


def _run(policy: PolicyProber) -> None:
    """Evaluate the policy's rules until it has to end."""
    from bellwether.probes.prometheus.prometheus_probe import PrometheusProbe
    from bellwether.probes.prometheus.query_rules import COMPARE
    from bellwether.telemetry.metrics.probe_metrics import QueryMetrics

    prober, clients = policy.prober, _Clients(policy.secrets)
    running = PrometheusProbe(prober.post, policy.clock, QueryMetrics(policy.metrics))

    def follow(found: LeadershipPolicy | None) -> bool:
        used = [one for one in prober.with_sources(found).sources.used if one.rules] if found is not None else []
        asked = clients.asked(used)
        running.configure(asked)
        prober.keep([rule.name for rule, _ in asked])
        answers, silent = running.answers(), running.silent()
        for one in used:
            if all(rule.name in answers for rule in one.rules):
                failed = next((rule.name for rule in one.rules if answers[rule.name]), None)
                problem = f"rule {failed}: Prometheus {answers[failed]}" if failed is not None else ""
                nothing = [rule.name for rule in one.rules if rule.name in silent]
                note = f"; since its start {few(nothing, NAMED)} returned no series: {COMPARE}" if nothing else ""
                prober.report_source(one.source, problem, f"a prober uses it{note}")
        return bool(asked)

    def refresh() -> float:
        known = prober.hosts()
        if known is not None:
            running.know(known)
        return BROKERS_SECONDS if known is not None else 1.0

    running.start()
    policy.run(running, follow, refresh)


class _Clients:
    """Clients of the Prometheus servers of a policy's sources."""

    def __init__(self, secrets: SecretReader) -> None:
        self._secrets = secrets
        self._made: dict[str, tuple[tuple[str, Access], PrometheusClient]] = {}

    def asked(self, used: Iterable[UsedSource]) -> list[tuple[PrometheusRule, QueryClient]]:
        """Each rule with the client of its server; a new token, password or certificate creates a new one."""
        return [(rule, client) for one in used for client in [self._client(one.source)] for rule in one.rules]

    def _client(self, source: SignalSource) -> QueryClient:
        from bellwether.adapters.kubernetes.kafka_cluster.prometheus_access import prometheus_access
        from bellwether.adapters.prometheus.query_client import PrometheusClient

        section, name = source.spec.prometheus, source.metadata.name
        if section is None:
            return _Unable(Terminal(f"SignalSource {name} has no prometheus"))
        try:
            made_of = prometheus_access(section, self._secrets)
        except Terminal as error:
            return _Unable(error)
        if name not in self._made or self._made[name][0] != made_of:
            self._made[name] = made_of, PrometheusClient(*made_of)
        return self._made[name][1]
