"""Grafana dashboard for on-call: sick brokers, leaders, moves, blocked moves, signals, the operator."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.panels import SCOPE, Panel, Query, board, graph, listing, number, states

HEALTH_STATES = (
    ("Healthy", "green"),
    ("Recovering", "blue"),
    ("Suspect", "yellow"),
    ("Unknown", "text"),
    ("Down", "purple"),
    ("Sick", "red"),
)


def _max(metric: str, by: str = "", more: str = "") -> str:
    """Maximum over the operator replicas: only the active one has current series."""
    labels = f"namespace, policy{', ' + by if by else ''}"
    return f"max by ({labels}) ({metric}{{{SCOPE}{', ' + more if more else ''}}})"


def _sum(metric: str, by: str = "", more: str = "") -> str:
    return f"sum{f' by ({by})' if by else ''} ({_max(metric, _both(by, 'broker'), more)})"


def _both(*labels: str) -> str:
    return ", ".join(dict.fromkeys(label for label in labels if label))


def _increase(metric: str, by: str) -> str:
    return f"sum by ({by}) (increase({metric}{{{SCOPE}}}[$__rate_interval]))"


def _verdicts() -> str:
    queries = [
        f"{value} * {_max('bellwether_broker_verdict', 'broker, verdict', f'verdict=~{chr(34)}{name}{chr(34)}')}"
        for value, (name, _) in enumerate(HEALTH_STATES)
    ]
    return f"max by (broker) ({' or '.join(queries)})"


def dashboard() -> Dashboard:
    """The dashboard."""
    now = [
        number(
            "Sick brokers",
            "Brokers with the verdict Sick.",
            Query(_sum("bellwether_broker_verdict", more='verdict="Sick"')),
        ),
        number("Demoted brokers", "Brokers that are demoted.", Query(_sum("bellwether_broker_demoted"))),
        number(
            "Blocked brokers",
            "Brokers whose demotion or promotion is blocked; the reasons are below.",
            Query(f"{_sum('bellwether_brokers_action_blocked')} or vector(0)"),
        ),
        number(
            "Partitions without leader",
            "Partitions that can be neither read nor written.",
            Query(f"sum({_max('bellwether_partitions_leaderless')})"),
        ),
        number(
            "Blocked moves",
            "Partitions that should be led by another broker, but whose move is blocked.",
            Query(f"sum({_max('bellwether_partition_moves_blocked', 'reason')}) or vector(0)"),
        ),
        number(
            "Since the last reconcile",
            "Maximum over the policies shown. An idle policy is reconciled every minute.",
            Query(f"max(time() - {_max('bellwether_reconcile_last_success_timestamp_seconds')})"),
            unit="s",
            bad_above=180,
        ),
    ]
    verdicts = [
        states(
            "Verdicts",
            "Verdict of each broker.",
            Query(_verdicts(), "broker {{broker}}"),
            HEALTH_STATES,
        ),
        listing(
            "Reasons of verdicts",
            "`bellwether explain BROKER` shows the evidence.",
            Query(f"{_max('bellwether_broker_verdict_reason', 'broker, reason')} == 1"),
        ),
        listing(
            "Firing and pending alerts",
            "Each alert has a page in docs/alerts.",
            Query('ALERTS{alertname=~"Bellwether.+", namespace=~"$namespace|"}'),
            hidden=("instance", "job"),
        ),
    ]
    leaders = [
        graph(
            "Leaders by broker",
            "A demoted broker leads only partitions whose move is blocked.",
            Query(_sum("bellwether_broker_leaders", "broker"), "broker {{broker}}"),
            stacked=True,
        ),
        graph(
            "Displaced",
            "Partitions whose order differs from their baseline, and leaders that are not the first of their baseline.",
            Query(f"sum({_max('bellwether_partitions_displaced')})", "displaced"),
            Query(f"sum({_max('bellwether_partitions_displaced_for_racks')})", "displaced for racks"),
            Query(f"sum({_max('bellwether_leaders_misplaced')})", "misplaced leaders"),
            Query(f"sum({_max('bellwether_undo_record_entries')})", "in the undo record"),
        ),
    ]
    moved = [
        graph(
            "Moves",
            "Replica orders changed, and leaders elected.",
            Query(_increase("bellwether_partitions_reordered_total", "policy"), "{{policy}}: reordered"),
            Query(_increase("bellwether_leaders_elected_total", "policy"), "{{policy}}: elected"),
        ),
        graph(
            "Demoted",
            "1 while a broker is demoted, and while acks=all writes wait for it.",
            Query(_max("bellwether_broker_demoted", "broker"), "broker {{broker}}"),
            Query(_max("bellwether_broker_holds_back_isr", "broker"), "broker {{broker}} delays acks=all"),
        ),
        graph(
            "Quarantined",
            "1 while an order to pause the broker is active, and while its quarantine agent has paused it.",
            Query(
                f"{_max('bellwether_broker_quarantine_ordered', 'broker')} or vector(0)", "broker {{broker}} ordered"
            ),
            Query(f"{_max('bellwether_broker_quarantine_paused', 'broker')} or vector(0)", "broker {{broker}} paused"),
        ),
        graph(
            "Quarantines",
            "Orders to pause a broker, and ended orders by reason.",
            Query(f"{_increase('bellwether_quarantines_started_total', 'policy')} or vector(0)", "{{policy}}: started"),
            Query(
                f"{_increase('bellwether_quarantines_ended_total', 'policy, reason')} or vector(0)",
                "{{policy}}: {{reason}}",
            ),
        ),
    ]
    held = [
        graph(
            "Blocked moves, by reason",
            "docs/runbook.md explains each reason.",
            Query(
                f"sum by (reason) ({_max('bellwether_partition_moves_blocked', 'reason')}) or vector(0)", "{{reason}}"
            ),
            stacked=True,
        ),
        graph(
            "Blocked brokers, by reason",
            "Cap, systemic cause, or manual promotion.",
            Query(
                f"sum by (reason) ({_max('bellwether_brokers_action_blocked', 'reason')}) or vector(0)", "{{reason}}"
            ),
            stacked=True,
        ),
    ]
    return board(
        "bellwether-on-call",
        "Bellwether: on call",
        "Sick brokers, leaders, moves, and reasons for blocked moves.",
        [
            ("Now", now),
            ("Brokers", verdicts),
            ("Leaders", leaders),
            ("Moves", moved),
            ("Blocked", held),
            ("Signals", _signals()),
            ("The operator", _operator()),
        ],
    )


def _signals() -> list[Panel]:
    return [
        graph(
            "Age of sources",
            "Seconds since the last Lease renewal of each prober, at the last reconcile; -1 if never renewed.",
            Query(_max("bellwether_signal_age_seconds", "type, source"), "{{type}} {{source}}"),
            unit="s",
        ),
        graph(
            "Signals by state",
            "Stale and unknown signals neither demote nor promote any broker.",
            Query(f"sum by (type, state) ({_max('bellwether_signals', 'type, state')})", "{{type}} {{state}}"),
            stacked=True,
        ),
    ]


def _operator() -> list[Panel]:
    durations = f"bellwether_reconcile_duration_seconds_bucket{{{SCOPE}}}[$__rate_interval]"
    return [
        states(
            "Active operator",
            "One process holds the Lease of a policy's Kafka cluster, the others are on standby.",
            Query(f"bellwether_operator_leading{{{SCOPE}}}", "{{policy}} {{instance}}"),
            (("standby", "text"), ("active", "green")),
            span=12,
        ),
        graph(
            "Reconcile duration",
            "Duration of successful reconciles.",
            *(
                Query(
                    f"histogram_quantile({q}, sum by (le) (rate({durations})))",
                    f"p{q * 100:g}",
                )
                for q in (0.5, 0.99)
            ),
            unit="s",
        ),
        graph(
            "Failed reconciles and aborted executions",
            "By kind of error, and by the reason for the abort.",
            Query(f"{_increase('bellwether_reconcile_errors_total', 'kind')} or vector(0)", "failed: {{kind}}"),
            Query(f"{_increase('bellwether_executions_aborted_total', 'reason')} or vector(0)", "aborted: {{reason}}"),
        ),
        graph(
            "Requests to Kafka",
            "By request and outcome.",
            Query(
                f"sum by (request, outcome) (rate(bellwether_kafka_requests_total{{{SCOPE}}}[$__rate_interval]))",
                "{{request}} {{outcome}}",
            ),
            unit="reqps",
        ),
        graph(
            "Duration of requests to Kafka",
            "The 99th percentile, by request.",
            Query(
                f"histogram_quantile(0.99, sum by (request, le)"
                f" (rate(bellwether_kafka_request_duration_seconds_bucket{{{SCOPE}}}[$__rate_interval])))",
                "{{request}}",
            ),
            unit="s",
        ),
        graph(
            "Requests to Kubernetes",
            "Of all operators; some conflicts are normal.",
            Query(
                "sum by (verb, outcome) (rate(bellwether_kubernetes_requests_total[$__rate_interval]))",
                "{{verb}} {{outcome}}",
            ),
            unit="reqps",
        ),
    ]
