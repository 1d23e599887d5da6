"""Grafana dashboard for availability and tail latency: objective, error budget, burn rate, probe latency."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.board import AVAILABILITY, board
from dashboards.panels import Panel, Steps, graph, heat, number, states
from dashboards.promql import BROKER, POLICY, SCOPE, Query, gauge, in_range, quantile, rate

OBJECTIVE = 0.9999
BUDGET = 0.0001
"""Error budget of the objective, as in the rules of ``files/alerts/availability.yaml``."""

MET: Steps = ((None, "red"), (OBJECTIVE, "green"))
LEFT: Steps = ((None, "red"), (1e-9, "yellow"), (0.25, "green"))
BURN: Steps = ((None, "green"), (1, "yellow"), (14.4, "red"))

RATIO = f"namespace_policy:bellwether_unavailability:ratio_rate1m{{{SCOPE}}}"
NO_PROBES = "no probes"


def dashboard() -> Dashboard:
    """The dashboard."""
    return board(
        AVAILABILITY,
        "Share of leaders that the vantages can reach, and response times of the brokers.",
        [
            ("Objective 99.99 %", _objective()),
            ("Reachability", _reachability()),
            ("Latency of probes", _latency()),
            ("Latency of acks", _acks()),
        ],
    )


def _objective() -> list[Panel]:
    def worst(expr: str) -> Query:
        return Query(f"bottomk(1, max by ({POLICY}) ({expr}))")

    why = "Share of reachable leaders, weighted by the leaders of each broker; the worst policy is shown."
    return [
        *(
            number(
                f"Availability, {window}",
                why,
                worst(f"1 - avg_over_time({RATIO}[{window}])"),
                MET,
                unit="percentunit",
                decimals=3,
                named=True,
                empty=NO_PROBES,
                span=4,
                height=4,
            )
            for window in ("5m", "1h", "1d", "30d")
        ),
        number(
            "Error budget left, 30 days",
            "100 % is the whole budget of 0.01 %; at 0 it is spent and the objective is missed.",
            worst(f"clamp_min(1 - avg_over_time({RATIO}[30d]) / {BUDGET}, 0)"),
            LEFT,
            unit="percentunit",
            decimals=1,
            named=True,
            empty=NO_PROBES,
            span=4,
            height=4,
        ),
        number(
            "Burn rate, 1 hour",
            "How many times faster than allowed the budget is used; at 14.4 it lasts two days.",
            Query(f"topk(1, max by ({POLICY}) (avg_over_time({RATIO}[1h]) / {BUDGET}))"),
            BURN,
            decimals=1,
            named=True,
            empty=NO_PROBES,
            span=4,
            height=4,
        ),
        graph(
            "Unavailability",
            "Share of leaders that were unreachable over the last minute; the line is the objective.",
            Query(f"max by ({POLICY}) ({RATIO})"),
            unit="percentunit",
            decimals=3,
            lines=((BUDGET, "red"),),
        ),
        graph(
            "Burn rate",
            "Alerts fire above 14.4 (5m and 1h), 6 (30m and 6h), 3 (2h and 1d), 1 (6h and 3d).",
            *(
                Query(f"max by ({POLICY}) (avg_over_time({RATIO}[{window}]) / {BUDGET})", window)
                for window in ("5m", "30m", "1h", "6h", "1d", "3d")
            ),
            decimals=1,
            lines=((1, "yellow"), (14.4, "red")),
        ),
    ]


def _reachability() -> list[Panel]:
    requests = "bellwether_probe_requests_total"

    def share(by: str, path: str = "external") -> str:
        successful = rate(requests, by, where=f'path="{path}", result="ok"')
        total = rate(requests, by, where=f'path="{path}"')
        return f"({successful} or 0 * {total}) / ({total} > 0)"

    reading, external = "bellwether_probe_reading", 'type="ExternalReachability"'
    seen = f"{BROKER}, source"
    failed = f"{in_range('min', reading, 'broker', 'source', where=external)} < 1"
    return [
        graph(
            "Successful probes, by vantage",
            "Share of probes of the external listener that the right broker answered.",
            Query(share("source"), "{{source}}"),
            unit="percentunit",
            decimals=1,
        ),
        graph(
            "Successful probes, by broker",
            "Share over the external listener, and over the internal one (the control).",
            Query(share("broker"), "broker {{broker}}"),
            Query(share("broker", "internal"), "broker {{broker}}, internal"),
            unit="percentunit",
            decimals=1,
        ),
        graph(
            "Failed probes, by stage",
            "By vantage, broker and stage. If only one vantage fails, its network path is the probable cause.",
            Query(
                rate(requests, "source", "broker", "result", where='path="external", result!="ok"'),
                "{{source}} broker {{broker}} {{result}}",
            ),
            unit="reqps",
            empty="No probe failed, if there are probes.",
        ),
        states(
            "Readings",
            "What each vantage reads of each broker that did not pass all the time.",
            Query(
                f"{gauge(reading, 'broker', 'source', where=external)} and on ({seen}) {failed}",
                "{{source}} broker {{broker}}",
            ),
            {1: ("passing", "green"), 0: ("failing", "red"), -1: ("unknown", "text")},
            empty="All readings passed, if there are probes.",
            span=12,
        ),
    ]


def _latency() -> list[Panel]:
    duration, external = "bellwether_probe_request_duration_seconds", 'path="external"'
    buckets = f"{duration}_bucket{{{SCOPE}, {external}}}"
    return [
        graph(
            "Probe duration, by vantage",
            "Through the load balancer, including the connection setup.",
            *(
                Query(quantile(q, duration, "source", where=external), f"{{{{source}}}} p{q * 100:g}")
                for q in (0.5, 0.99, 0.999)
            ),
            unit="s",
        ),
        graph(
            "Probe duration, by broker",
            "The 99th percentile over all vantages.",
            Query(quantile(0.99, duration, "broker", where=external), "broker {{broker}}"),
            unit="s",
        ),
        heat(
            "All probes",
            "Number of probes by duration, of all policies chosen.",
            Query(f"sum by (le) (increase({buckets}[$__rate_interval]))", "{{le}}", of=""),
        ),
    ]


def _acks() -> list[Panel]:
    disk = "bellwether_probe_disk_write_duration_seconds"
    return [
        graph(
            "Disk write duration, by broker",
            "A 4 KiB write with fdatasync on the volume of the broker's log.",
            *(Query(quantile(q, disk, "broker"), f"broker {{{{broker}}}} p{q * 100:g}") for q in (0.5, 0.99)),
            unit="s",
            empty="No storage prober reports.",
            span=8,
        ),
        graph(
            "Replication lag",
            "How long ago the leader's log ended where the follower's log ends now. acks=all waits for ISR members.",
            Query(gauge("bellwether_probe_replication_lag_seconds", "broker"), "broker {{broker}}"),
            unit="s",
            empty="No replication prober reports.",
            span=8,
        ),
        graph(
            "Brokers that delay acks=all",
            "1 while a broker is a slow follower in the ISR of partitions led by others; demotion does not help then.",
            Query(gauge("bellwether_broker_holds_back_isr", "broker"), "broker {{broker}}"),
            span=8,
        ),
    ]
