"""Grafana dashboard for availability and tail latency: objective, error budget, burn rate, probe latency."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.panels import SCOPE, Panel, Query, board, graph, heat, number

BUDGET = 0.0001
"""Error budget of the objective 99.99 %, as in the rules of ``files/alerts/availability.yaml``."""

RATIO = f"namespace_policy:bellwether_unavailability:ratio_rate1m{{{SCOPE}}}"
QUANTILES = (0.5, 0.99, 0.999)


def dashboard() -> Dashboard:
    """The dashboard."""
    return board(
        "bellwether-availability",
        "Bellwether: availability and tail latency",
        "Share of leaders that the vantages can reach, and response times of the brokers.",
        [
            ("Objective 99.99 %", _objective()),
            ("Reachability", _reachability()),
            ("Latency of probes", _latency()),
            ("Latency of acks", _acks()),
        ],
    )


def _objective() -> list[Panel]:
    def over(window: str) -> Query:
        return Query(f"min(1 - avg_over_time({RATIO}[{window}]))")

    why = "Share of reachable leaders, weighted by the leaders of each broker; the worst policy is shown."
    return [
        *(
            number(f"Availability, {window}", why, over(window), unit="percentunit", bad_above=None)
            for window in ("5m", "1h", "1d", "30d")
        ),
        number(
            "Error budget left, 30 days",
            "1 is the whole budget of 0.01 %; below 0 the objective is missed.",
            Query(f"min(1 - avg_over_time({RATIO}[30d]) / {BUDGET})"),
            unit="percentunit",
            bad_above=None,
        ),
        number(
            "Burn rate, 1 hour",
            "How many times faster than allowed the budget is used; at 14.4 it lasts two days.",
            Query(f"max(avg_over_time({RATIO}[1h]) / {BUDGET})"),
            bad_above=14.4,
        ),
        graph(
            "Unavailability",
            "Share of leaders that were unreachable over the last minute.",
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
        requests = f'bellwether_probe_requests_total{{{SCOPE}, path="{path}"'
        successful = f'sum by ({by}) (rate({requests}, result="ok"}}[$__rate_interval]))'
        total = f"sum by ({by}) (rate({requests}}}[$__rate_interval]))"
        return f"({successful} or 0 * {total}) / ({total} > 0)"

    failed = f'bellwether_probe_requests_total{{{SCOPE}, path="external", result!="ok"}}'
    return [
        graph(
            "Successful probes, by vantage",
            "Share of probes of the external listener that the right broker answered.",
            Query(share("source"), "{{source}}"),
            unit="percentunit",
        ),
        graph(
            "Successful probes, by broker",
            "Share over the external listener, and over the internal one (the control).",
            Query(share("broker"), "broker {{broker}}"),
            Query(share("broker", "internal"), "broker {{broker}}, internal"),
            unit="percentunit",
        ),
        graph(
            "Failed probes, by stage",
            "By vantage, broker and stage. If only one vantage fails, its network path is the probable cause.",
            Query(
                f"sum by (source, broker, result) (rate({failed}[$__rate_interval])) or vector(0)",
                "{{source}} broker {{broker}} {{result}}",
            ),
            unit="reqps",
        ),
        graph(
            "Readings",
            "Reading of each vantage for each broker: 1 passing, 0 failing, -1 unknown.",
            Query(f'bellwether_probe_reading{{{SCOPE}, type="ExternalReachability"}}', "{{source}} broker {{broker}}"),
        ),
    ]


def _latency() -> list[Panel]:
    buckets = f'bellwether_probe_request_duration_seconds_bucket{{{SCOPE}, path="external"}}[$__rate_interval]'
    return [
        graph(
            "Probe duration, by vantage",
            "Through the load balancer, including the connection setup.",
            *(Query(_quantile(q, "source", buckets), f"{{{{source}}}} p{q * 100:g}") for q in QUANTILES),
            unit="s",
        ),
        graph(
            "Probe duration, by broker",
            "The 99th percentile over all vantages.",
            Query(_quantile(0.99, "broker", buckets), "broker {{broker}}"),
            unit="s",
        ),
        heat(
            "All probes",
            "Number of probes by duration.",
            Query(f"sum by (le) (increase({buckets}))", "{{le}}"),
        ),
    ]


def _acks() -> list[Panel]:
    buckets = f"bellwether_probe_disk_write_duration_seconds_bucket{{{SCOPE}}}[$__rate_interval]"
    return [
        graph(
            "Disk write duration, by broker",
            "A 4 KiB write with fdatasync on the volume of the broker's log.",
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
            "How long ago the leader's log ended where the follower's log ends now. acks=all waits for ISR members.",
            Query(
                f"max by (broker) (bellwether_probe_replication_lag_seconds{{{SCOPE}}})",
                "broker {{broker}}",
            ),
            unit="s",
        ),
        graph(
            "Brokers that delay acks=all",
            "1 while a broker is a slow follower in the ISR of partitions led by others; demotion does not help then.",
            Query(f"max by (broker) (bellwether_broker_holds_back_isr{{{SCOPE}}})", "broker {{broker}}"),
        ),
    ]


def _quantile(q: float, by: str, buckets: str) -> str:
    return f"histogram_quantile({q}, sum by ({by}, le) (rate({buckets})))"
