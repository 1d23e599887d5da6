"""The dashboard of availability and tail latency: four nines, what is left of them, and how fast it goes."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.panels import SCOPE, Panel, Query, board, graph, heat, number

BUDGET = 0.0001
"""What an objective of 99.99 % allows; the rules in ``files/alerts/availability.yaml`` say the same."""

RATIO = f"namespace_policy:bellwether_unavailability:ratio_rate1m{{{SCOPE}}}"
QUANTILES = (0.5, 0.99, 0.999)


def dashboard() -> Dashboard:
    """The dashboard."""
    return board(
        "bellwether-availability",
        "Bellwether: availability and tail latency",
        "What share of the leaders the vantages reach, and how long brokers take to answer.",
        [
            ("Four nines", _objective()),
            ("Reachability", _reachability()),
            ("Latency of answers", _latency()),
            ("What acks wait for", _acks()),
        ],
    )


def _objective() -> list[Panel]:
    def over(window: str) -> Query:
        return Query(f"min(1 - avg_over_time({RATIO}[{window}]))")

    why = "The share of leaders that vantages reached, weighted by what each broker leads; the worst policy shown."
    return [
        *(
            number(f"Availability, {window}", why, over(window), unit="percentunit", bad_above=None)
            for window in ("5m", "1h", "1d", "30d")
        ),
        number(
            "Budget left, 30 days",
            "1 is the whole budget of 0.01 %, below 0 the objective is missed.",
            Query(f"min(1 - avg_over_time({RATIO}[30d]) / {BUDGET})"),
            unit="percentunit",
            bad_above=None,
        ),
        number(
            "Burn rate, 1 hour",
            "How many times faster than allowed the budget goes; at 14.4 it is gone in two days.",
            Query(f"max(avg_over_time({RATIO}[1h]) / {BUDGET})"),
            bad_above=14.4,
        ),
        graph(
            "Unavailability",
            "The share of leaders that could not be reached, over the last minute.",
            Query(RATIO, "{{namespace}}/{{policy}}"),
            unit="percentunit",
        ),
        graph(
            "Burn rate",
            "Alerts fire above 14.4 (5m and 1h), 6 (30m and 6h), 3 (2h and 1d), 1 (6h and 3d).",
            *(
                Query(f"max(avg_over_time({RATIO}[{window}]) / {BUDGET})", window)
                for window in ("5m", "30m", "1h", "6h", "1d", "3d")
            ),
        ),
    ]


def _reachability() -> list[Panel]:
    def share(by: str, path: str = "external") -> str:
        asks = f'bellwether_probe_asks_total{{{SCOPE}, path="{path}"'
        right = f'sum by ({by}) (rate({asks}, result="ok"}}[$__rate_interval]))'
        asked = f"sum by ({by}) (rate({asks}}}[$__rate_interval]))"
        return f"({right} or 0 * {asked}) / ({asked} > 0)"

    failed = f'bellwether_probe_asks_total{{{SCOPE}, path="external", result!="ok"}}'
    return [
        graph(
            "Answered, by vantage",
            "The share of questions over the external listener that the right broker answered.",
            Query(share("source"), "{{source}}"),
            unit="percentunit",
        ),
        graph(
            "Answered, by broker",
            "Over the external listener, and over the internal one, which is the control.",
            Query(share("broker"), "broker {{broker}}"),
            Query(share("broker", "internal"), "broker {{broker}}, inside"),
            unit="percentunit",
        ),
        graph(
            "Not answered, by the stage at which it broke",
            "By vantage, broker and stage; seen from one vantage alone it is the way there that is broken.",
            Query(
                f"sum by (source, broker, result) (rate({failed}[$__rate_interval])) or vector(0)",
                "{{source}} broker {{broker}} {{result}}",
            ),
            unit="reqps",
        ),
        graph(
            "Readings",
            "What each vantage says of each broker: 1 passing, 0 failing, -1 unknown.",
            Query(f'bellwether_probe_reading{{{SCOPE}, type="ExternalReachability"}}', "{{source}} broker {{broker}}"),
        ),
    ]


def _latency() -> list[Panel]:
    buckets = f'bellwether_probe_ask_seconds_bucket{{{SCOPE}, path="external"}}[$__rate_interval]'
    return [
        graph(
            "Time to an answer, by vantage",
            "Through the load balancer, connecting included.",
            *(Query(_quantile(q, "source", buckets), f"{{{{source}}}} p{q * 100:g}") for q in QUANTILES),
            unit="s",
        ),
        graph(
            "Time to an answer, by broker",
            "The 99th percentile over all vantages.",
            Query(_quantile(0.99, "broker", buckets), "broker {{broker}}"),
            unit="s",
        ),
        heat(
            "All answers",
            "How many took how long.",
            Query(f"sum by (le) (increase({buckets}))", "{{le}}"),
        ),
    ]


def _acks() -> list[Panel]:
    buckets = f"bellwether_probe_disk_write_seconds_bucket{{{SCOPE}}}[$__rate_interval]"
    return [
        graph(
            "Time of a write, by broker",
            "A 4 KiB write with fdatasync beside the broker's log: what acks wait for below page cache.",
            *(
                Query(
                    _quantile(q, "broker", buckets),
                    f"broker {{{{broker}}}} p{q * 100:g}",
                )
                for q in (0.5, 0.99)
            ),
            unit="s",
        ),
        graph(
            "Replication lag",
            "How long ago the leader's log ended where the follower's ends now; in the ISR, acks=all waits for it.",
            Query(
                f"max by (broker) (bellwether_probe_replication_lag_seconds{{{SCOPE}}})",
                "broker {{broker}}",
            ),
            unit="s",
        ),
        graph(
            "Who holds acks=all back",
            "1 while a broker follows slowly and is in the ISR of what others lead; demoting it does not help then.",
            Query(f"max by (broker) (bellwether_broker_holds_back_isr{{{SCOPE}}})", "broker {{broker}}"),
        ),
    ]


def _quantile(q: float, by: str, buckets: str) -> str:
    return f"histogram_quantile({q}, sum by ({by}, le) (rate({buckets})))"
