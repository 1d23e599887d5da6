"""The dashboard of whoever is on call: who is ill, who leads, what moved, why something is held."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.panels import SCOPE, Panel, Query, board, graph, listing, number, states

STANDINGS = (
    ("Healthy", "green"),
    ("Recovering", "blue"),
    ("Suspect", "yellow"),
    ("Unknown", "text"),
    ("Down", "purple"),
    ("Sick", "red"),
)


def _max(metric: str, by: str = "", more: str = "") -> str:
    """Whoever leads tells; a process that stands by says nothing, and each has series of its own."""
    labels = f"namespace, policy{', ' + by if by else ''}"
    return f"max by ({labels}) ({metric}{{{SCOPE}{', ' + more if more else ''}}})"


def _sum(metric: str, by: str = "", more: str = "") -> str:
    return f"sum{f' by ({by})' if by else ''} ({_max(metric, _both(by, 'broker'), more)})"


def _both(*labels: str) -> str:
    return ", ".join(dict.fromkeys(label for label in labels if label))


def _increase(metric: str, by: str) -> str:
    return f"sum by ({by}) (increase({metric}{{{SCOPE}}}[$__rate_interval]))"


def _verdicts() -> str:
    told = [
        f"{value} * {_max('bellwether_broker_verdict', 'broker, verdict', f'verdict=~{chr(34)}{name}{chr(34)}')}"
        for value, (name, _) in enumerate(STANDINGS)
    ]
    return f"max by (broker) ({' or '.join(told)})"


def dashboard() -> Dashboard:
    """The dashboard."""
    now = [
        number(
            "Sick brokers", "Judged sick by signals.", Query(_sum("bellwether_broker_verdict", more='verdict="Sick"'))
        ),
        number("Demoted brokers", "Kept from leading.", Query(_sum("bellwether_broker_demoted"))),
        number(
            "Brokers held",
            "Their demotion or promotion is held back: see why below.",
            Query(f"{_sum('bellwether_brokers_held')} or vector(0)"),
        ),
        number(
            "Partitions without leader",
            "They can be neither read nor written.",
            Query(f"sum({_max('bellwether_partitions_leaderless')})"),
        ),
        number(
            "Moves held",
            "Partitions that should be led by another broker, and why not yet.",
            Query(f"sum({_max('bellwether_moves_held', 'reason')}) or vector(0)"),
        ),
        number(
            "Since the last turn",
            "The longest of the policies shown. At rest a turn is taken each minute.",
            Query(f"max(time() - {_max('bellwether_turn_last_success_timestamp_seconds')})"),
            unit="s",
            bad_above=180,
        ),
    ]
    verdicts = [
        states(
            "Verdicts",
            "What the signals of each broker add up to.",
            Query(_verdicts(), "broker {{broker}}"),
            STANDINGS,
        ),
        listing(
            "Reasons of verdicts",
            "`bellwether explain BROKER` tells the evidence.",
            Query(f"{_max('bellwether_broker_verdict_reason', 'broker, reason')} == 1"),
        ),
        listing(
            "Alerts that fire or are about to",
            "Each has a page in docs/alerts.",
            Query('ALERTS{alertname=~"Bellwether.+", namespace=~"$namespace|"}'),
            hidden=("instance", "job"),
        ),
    ]
    leaders = [
        graph(
            "Leaders by broker",
            "A demoted broker leads nothing but what is held.",
            Query(_sum("bellwether_broker_leaders", "broker"), "broker {{broker}}"),
            stacked=True,
        ),
        graph(
            "Out of place",
            "Partitions with another order than their baseline, and leaders elsewhere than their baseline wants.",
            Query(f"sum({_max('bellwether_partitions_displaced')})", "displaced"),
            Query(f"sum({_max('bellwether_partitions_displaced_for_racks')})", "of them for the racks' sake"),
            Query(f"sum({_max('bellwether_leaders_out_of_place')})", "leaders out of place"),
            Query(f"sum({_max('bellwether_undo_record_entries')})", "in the undo record"),
        ),
    ]
    moved = [
        graph(
            "Moves",
            "Replica orders written, and leaders elected.",
            Query(_increase("bellwether_partitions_reordered_total", "policy"), "{{policy}}: reordered"),
            Query(_increase("bellwether_leaders_elected_total", "policy"), "{{policy}}: elected"),
        ),
        graph(
            "Demoted",
            "1 while a broker is kept from leading, and while acks=all waits for it all the same.",
            Query(_max("bellwether_broker_demoted", "broker"), "broker {{broker}}"),
            Query(_max("bellwether_broker_holds_back_isr", "broker"), "broker {{broker}} holds acks=all back"),
        ),
        graph(
            "Quarantined",
            "1 while a broker is ordered to be paused, and while its quarantine agent says that it has paused it.",
            Query(
                f"{_max('bellwether_broker_quarantine_ordered', 'broker')} or vector(0)", "broker {{broker}} ordered"
            ),
            Query(f"{_max('bellwether_broker_quarantine_paused', 'broker')} or vector(0)", "broker {{broker}} paused"),
        ),
        graph(
            "Quarantines",
            "Orders given, and orders that ended, by reason.",
            Query(f"{_increase('bellwether_quarantines_begun_total', 'policy')} or vector(0)", "{{policy}}: begun"),
            Query(
                f"{_increase('bellwether_quarantines_ended_total', 'policy, reason')} or vector(0)",
                "{{policy}}: {{reason}}",
            ),
        ),
    ]
    held = [
        graph(
            "Moves held, by reason",
            "Each reason is explained in docs/runbook.md.",
            Query(f"sum by (reason) ({_max('bellwether_moves_held', 'reason')}) or vector(0)", "{{reason}}"),
            stacked=True,
        ),
        graph(
            "Brokers held, by reason",
            "Cap, systemic cause, or a promotion that is left to a person.",
            Query(f"sum by (reason) ({_max('bellwether_brokers_held', 'reason')}) or vector(0)", "{{reason}}"),
            stacked=True,
        ),
    ]
    return board(
        "bellwether-on-call",
        "Bellwether: on call",
        "Who is sick, who leads, what moved and why something is held.",
        [
            ("Now", now),
            ("Brokers", verdicts),
            ("Leaders", leaders),
            ("What moved", moved),
            ("Why held", held),
            ("Signals", _signals()),
            ("The operator", _operator()),
        ],
    )


def _signals() -> list[Panel]:
    return [
        graph(
            "Age of sources",
            "How long ago each prober was last heard of, at the end of a turn; -1 for never.",
            Query(_max("bellwether_signal_age_seconds", "type, source"), "{{type}} {{source}}"),
            unit="s",
        ),
        graph(
            "Signals by what they say",
            "Stale and unknown ones demote nobody, and promote nobody.",
            Query(f"sum by (type, state) ({_max('bellwether_signals', 'type, state')})", "{{type}} {{state}}"),
            stacked=True,
        ),
    ]


def _operator() -> list[Panel]:
    turns = f"bellwether_turn_seconds_bucket{{{SCOPE}}}[$__rate_interval]"
    return [
        states(
            "Who leads",
            "One process holds the Lease of a policy's Kafka cluster, the others stand by.",
            Query(f"bellwether_leadership_held{{{SCOPE}}}", "{{policy}} {{instance}}"),
            (("stands by", "text"), ("leads", "green")),
            span=12,
        ),
        graph(
            "Turns",
            "Time of a turn.",
            *(
                Query(
                    f"histogram_quantile({q}, sum by (le) (rate({turns})))",
                    f"p{q * 100:g}",
                )
                for q in (0.5, 0.99)
            ),
            unit="s",
        ),
        graph(
            "Turns that failed, and runs that stopped",
            "By kind of error, and by the reason why a plan was not carried out to its end.",
            Query(f"{_increase('bellwether_errors_total', 'kind')} or vector(0)", "failed: {{kind}}"),
            Query(f"{_increase('bellwether_runs_stopped_total', 'reason')} or vector(0)", "stopped: {{reason}}"),
        ),
        graph(
            "Requests to Kafka",
            "By kind and outcome.",
            Query(
                f"sum by (request, outcome) (rate(bellwether_kafka_requests_total{{{SCOPE}}}[$__rate_interval]))",
                "{{request}} {{outcome}}",
            ),
            unit="reqps",
        ),
        graph(
            "Time of requests to Kafka",
            "The 99th percentile, by kind.",
            Query(
                f"histogram_quantile(0.99, sum by (request, le)"
                f" (rate(bellwether_kafka_request_seconds_bucket{{{SCOPE}}}[$__rate_interval])))",
                "{{request}}",
            ),
            unit="s",
        ),
        graph(
            "Requests to Kubernetes",
            "Of all operators; conflicts are part of the trade.",
            Query(
                "sum by (verb, outcome) (rate(bellwether_kubernetes_requests_total[$__rate_interval]))",
                "{{verb}} {{outcome}}",
            ),
            unit="reqps",
        ),
    ]
