"""Grafana dashboard for on-call. One screen without scrolling: who, why, since when, what moved, what is blocked."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.board import ON_CALL, board
from dashboards.panels import REASONS, RUNBOOKS, YELLOW_IF_ANY, Column, Panel, graph, listing, number, states
from dashboards.promql import BROKER, SCOPE, Query, gauge, in_range, increase, quantile, rate

HEALTH_STATES = {
    "Healthy": "green",
    "Recovering": "blue",
    "Suspect": "yellow",
    "Unknown": "text",
    "Down": "purple",
    "Sick": "red",
}
ALERT = "cluster, namespace, policy, broker, source, reason, alertname, severity, alertstate"


def dashboard() -> Dashboard:
    """The dashboard."""
    return board(
        ON_CALL,
        "Which brokers are sick, why, since when, what moved, and what is blocked.",
        [
            ("", [*_how_many(), _brokers(), _alerts(), *_moved(), *_blocked()]),
            ("Displaced partitions and returning leaders", _displaced()),
            ("Quarantine", _quarantine()),
            ("Signals", _signals()),
            ("The operator", _operator()),
        ],
    )


def _verdict(state: str) -> str:
    return gauge("bellwether_broker_verdict", "broker", where=f'verdict="{state}"')


def _how_many() -> list[Panel]:
    def brokers(state: str) -> Query:
        return Query(f"sum({_verdict(state)})")

    risks = gauge("bellwether_partitions_at_risk", "risk", where='risk=~"UnderMinIsr|AtMinIsr"')
    last = gauge("bellwether_reconcile_last_success_timestamp_seconds")
    return [
        number("Sick", "Brokers with the verdict Sick.", brokers("Sick")),
        number("Down", "Brokers that Kafka has fenced, or none of whose listeners answers.", brokers("Down")),
        number("Unknown", "Brokers that cannot be judged: they are not demoted.", brokers("Unknown"), YELLOW_IF_ANY),
        number(
            "Demoted",
            "Brokers that are demoted.",
            Query(f"sum({gauge('bellwether_broker_demoted', 'broker')})"),
            YELLOW_IF_ANY,
        ),
        number(
            "Without leader",
            "Partitions that can be neither read nor written.",
            Query(f"sum({gauge('bellwether_partitions_leaderless')})"),
        ),
        number(
            "At or under min ISR",
            "Partitions that reject acks=all writes, now or after the loss of one more broker.",
            Query(f"sum({risks})"),
        ),
        number(
            "Not enforcing",
            "Policies that are suspended or in mode Observe: they move nothing.",
            Query(f"sum(1 - {gauge('bellwether_policy_enforcing')})"),
            YELLOW_IF_ANY,
        ),
        number(
            "Since last reconcile",
            "Maximum over the policies shown. An idle policy is reconciled every minute.",
            Query(f"max(time() - {last})"),
            ((None, "green"), (180, "red")),
            unit="s",
            decimals=0,
        ),
    ]


def _brokers() -> Panel:
    demoted, blocked = "bellwether_broker_demoted", "bellwether_broker_action_blocked"
    not_healthy = f'bellwether_broker_verdict{{{SCOPE}, verdict!="Healthy"}} == 1'
    listed = f"max by ({BROKER}) ({not_healthy} or {demoted}{{{SCOPE}}} == 1 or {blocked}{{{SCOPE}}} == 1)"
    verdict = f"{gauge('bellwether_broker_verdict', 'broker', 'verdict')} == 1"
    since = gauge("bellwether_broker_verdict_since_timestamp_seconds", "broker")
    why = f'label_replace({gauge(blocked, "broker", "reason")}, "blocked", "$1", "reason", "(.+)")'
    queries = [
        f"({verdict}) * on ({BROKER}) group_left () (time() - {since})",
        gauge("bellwether_broker_verdict_reason", "broker", "reason"),
        f"time() - {gauge('bellwether_broker_demoted_since_timestamp_seconds', 'broker')}",
        f"max by ({BROKER}, blocked) ({why})",
        gauge("bellwether_broker_leaders", "broker"),
    ]
    return listing(
        "Who, why, since when",
        "Brokers that are not Healthy, or demoted, or blocked. `bellwether explain BROKER` shows the evidence.",
        [Query(f"{query} and on ({BROKER}) {listed}") for query in queries],
        [
            Column("cluster", "cluster"),
            Column("namespace", "namespace"),
            Column("policy", "policy"),
            Column("broker", "broker"),
            Column("verdict", "verdict", colors=HEALTH_STATES),
            Column("reason", "why", link=REASONS),
            Column("Value #A", "for", unit="s"),
            Column("Value #C", "demoted for", unit="s"),
            Column("Value #E", "leaders"),
            Column("blocked", "blocked by", link=REASONS),
        ],
        empty="None, as far as an operator reports.",
        span=13,
        height=7,
    )


def _alerts() -> Panel:
    variables = 'cluster=~"$cluster", namespace=~"$namespace|", policy=~"$policy|"'

    def chosen(metric: str) -> str:
        return f'{metric}{{alertname=~"Bellwether.+", severity!="info", {variables}}}'

    active = f"(time() - {chosen('ALERTS_FOR_STATE')})"
    return listing(
        "Alerts, firing and pending",
        "The name of an alert leads to its runbook page. Those with severity info are left out.",
        [Query(f"max by ({ALERT}) ({chosen('ALERTS')} * ignoring (alertstate) group_left () {active})")],
        [
            Column("alertname", "alert", link=RUNBOOKS + "${__value.raw}/"),
            Column("severity", "severity", colors={"critical": "red", "warning": "orange", "info": "blue"}),
            Column("alertstate", "state"),
            Column("Value", "for", unit="s"),
            Column("broker", "broker"),
            Column("source", "source"),
            Column("reason", "reason"),
            Column("policy", "policy"),
            Column("namespace", "namespace"),
            Column("cluster", "cluster"),
        ],
        sort="severity",
        empty="No alert is pending or firing.",
        span=11,
        height=7,
    )


def _moved() -> list[Panel]:
    verdicts = " or ".join(f"{value} * ({_verdict(name)} == 1)" for value, name in enumerate(HEALTH_STATES))
    unhealthy = in_range("max", "bellwether_broker_verdict", "broker", where='verdict!="Healthy"')
    return [
        states(
            "Verdicts",
            "Brokers that were not Healthy at some time of the range shown.",
            Query(f"max by ({BROKER}) ({verdicts}) and on ({BROKER}) {unhealthy} == 1", "broker {{broker}}"),
            dict(enumerate(HEALTH_STATES.items())),
            empty="All brokers were Healthy, as far as an operator reported.",
            span=8,
            height=6,
        ),
        graph(
            "Leaders by broker",
            "A demoted broker leads only partitions whose move is blocked.",
            Query(gauge("bellwether_broker_leaders", "broker"), "broker {{broker}}"),
            span=8,
            height=6,
        ),
        graph(
            "Moves",
            "Replica orders changed, and leaders elected.",
            Query(increase("bellwether_partitions_reordered_total"), "reordered"),
            Query(increase("bellwether_leaders_elected_total"), "elected"),
            span=8,
            height=6,
        ),
    ]


def _blocked() -> list[Panel]:
    return [
        graph(
            "Blocked moves, by reason",
            "Partitions that another broker should lead. The page of reasons explains each of them.",
            Query(gauge("bellwether_partition_moves_blocked", "reason"), "{{reason}}"),
            stacked=True,
            empty="No move is blocked.",
            span=8,
            height=6,
        ),
        graph(
            "Blocked brokers, by reason",
            "Demotions and promotions that the cap, a systemic cause or manual promotion blocks; waves that wait.",
            Query(gauge("bellwether_brokers_action_blocked", "reason"), "{{reason}}"),
            Query(
                gauge("bellwether_broker_restoration_blocked", "broker", "reason"),
                "wave of broker {{broker}}: {{reason}}",
            ),
            stacked=True,
            empty="No demotion, promotion or wave is blocked.",
            span=8,
            height=6,
        ),
        graph(
            "Partitions at risk, by class",
            "Partitions with too few in-sync replicas or without a leader. `bellwether doctor` says what to do.",
            Query(f"{gauge('bellwether_partitions_at_risk', 'risk')} > 0", "{{risk}}"),
            stacked=True,
            empty="No partition is at risk, as far as an operator reports.",
            span=8,
            height=6,
        ),
    ]


def _displaced() -> list[Panel]:
    return [
        graph(
            "Displaced",
            "Partitions whose order differs from their baseline, and leaders that are not the first of their baseline.",
            Query(gauge("bellwether_partitions_displaced"), "displaced"),
            Query(gauge("bellwether_partitions_displaced_for_racks"), "displaced for racks"),
            Query(gauge("bellwether_leaders_misplaced"), "misplaced leaders"),
            Query(gauge("bellwether_undo_record_entries"), "in the undo record"),
        ),
        graph(
            "Restoration",
            "Share of its leaders that a promoted broker may have; it grows wave by wave.",
            Query(gauge("bellwether_broker_restoration_ratio", "broker"), "broker {{broker}}"),
            unit="percentunit",
            empty="No broker was in restoration.",
        ),
    ]


def _quarantine() -> list[Panel]:
    none = "No broker was ordered to be held."
    return [
        graph(
            "Quarantined",
            "1 while an order to hold the broker is active, and while its quarantine agent holds it.",
            Query(gauge("bellwether_broker_quarantine_ordered", "broker"), "broker {{broker}} ordered"),
            Query(gauge("bellwether_broker_quarantine_held", "broker"), "broker {{broker}} held"),
            empty=none,
        ),
        graph(
            "Quarantines",
            "Orders to hold a broker, and ended orders by reason.",
            Query(increase("bellwether_quarantines_started_total"), "started"),
            Query(increase("bellwether_quarantines_ended_total", "reason"), "ended: {{reason}}"),
            empty=none,
        ),
    ]


def _signals() -> list[Panel]:
    return [
        graph(
            "Age of sources",
            "Seconds since the last Lease renewal of each prober, at the last reconcile; -1 if never renewed.",
            Query(gauge("bellwether_signal_age_seconds", "type", "source"), "{{type}} {{source}}"),
            unit="s",
            least=None,
            empty="No prober has ever reported.",
        ),
        graph(
            "Signals by state",
            "Stale and unknown signals neither demote nor promote any broker.",
            Query(f"{gauge('bellwether_signals', 'type', 'state')} > 0", "{{type}} {{state}}"),
            stacked=True,
            empty="No prober has ever reported.",
        ),
    ]


def _operator() -> list[Panel]:
    return [
        states(
            "Active operator",
            "One process holds the Lease of a policy's Kafka cluster, the others are on standby.",
            Query(gauge("bellwether_operator_leading", "instance"), "{{instance}}"),
            {0: ("standby", "text"), 1: ("active", "green")},
            empty="No operator reports.",
            span=12,
        ),
        listing(
            "Policies that cannot be reconciled",
            "The page of reasons explains each of them.",
            [Query(f"{gauge('bellwether_policy_error', 'reason')} == 1")],
            [
                Column("cluster", "cluster"),
                Column("namespace", "namespace"),
                Column("policy", "policy"),
                Column("reason", "why", link=REASONS),
            ],
            empty="None, as far as an operator reports.",
        ),
        graph(
            "Reconcile duration",
            "Duration of successful reconciles.",
            *(Query(quantile(q, "bellwether_reconcile_duration_seconds"), f"p{q * 100:g}") for q in (0.5, 0.99)),
            unit="s",
        ),
        graph(
            "Failed reconciles and aborted executions",
            "By kind of error, and by the reason for the abort.",
            Query(increase("bellwether_reconcile_errors_total", "kind"), "failed: {{kind}}"),
            Query(increase("bellwether_executions_aborted_total", "reason"), "aborted: {{reason}}"),
            empty="No reconcile failed, and no execution was aborted.",
        ),
        graph(
            "Requests to Kafka",
            "By request and outcome.",
            Query(rate("bellwether_kafka_requests_total", "request", "outcome"), "{{request}} {{outcome}}"),
            unit="reqps",
        ),
        graph(
            "Duration of requests to Kafka",
            "The 99th percentile, by request.",
            Query(quantile(0.99, "bellwether_kafka_request_duration_seconds", "request"), "{{request}}"),
            unit="s",
        ),
        graph(
            "Requests to Kubernetes",
            "Of all operators; some conflicts are normal.",
            Query(
                "sum by (cluster, verb, outcome)"
                ' (rate(bellwether_kubernetes_requests_total{cluster=~"$cluster"}[$__rate_interval]))',
                "{{verb}} {{outcome}} {{cluster}}",
                of="",
            ),
            unit="reqps",
        ),
    ]
