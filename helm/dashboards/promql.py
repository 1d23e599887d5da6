"""PromQL of the dashboards. Every query keeps the labels ``cluster``, ``namespace`` and ``policy`` of its series.

``cluster`` is a label that many installations of Prometheus add; where it is absent, it matches and shows as empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SCOPE = 'cluster=~"$cluster", namespace=~"$namespace", policy=~"$policy"'
"""The matchers of every query: the variables of the dashboards."""

POLICY = "cluster, namespace, policy"
BROKER = f"{POLICY}, broker"


@dataclass(frozen=True)
class Query:
    """An expression, what each of its series is, with labels in ``{{ }}``, and of what: of a policy, as a rule."""

    expr: str
    what: str = ""
    of: str = "{{namespace}}/{{policy}} {{cluster}}"

    @property
    def legend(self) -> str:
        """The name of a series."""
        return ", ".join(filter(None, (self.what, self.of)))


def gauge(metric: str, *labels: str, where: str = "", at: str = "") -> str:
    """A gauge by policy and more labels, now or ``at`` another time (``offset 1m``).

    The maximum over the operators, of which only the active one has series.
    """
    selected = f"{metric}{{{_matchers(where)}}}{f' {at}' if at else ''}"
    return f"max by ({_with_policy(labels)}) ({selected})"


def in_range(function: str, metric: str, *labels: str, where: str = "") -> str:
    """The maximum or minimum of a gauge over the range that the dashboard shows, by policy and more labels."""
    over = f"{function}_over_time({metric}{{{_matchers(where)}}}[$__range] @ end())"
    return f"{function} by ({_with_policy(labels)}) ({over})"


def increase(metric: str, *labels: str) -> str:
    """How much a counter has increased, by policy and more labels."""
    return f"sum by ({_with_policy(labels)}) (increase({metric}{{{SCOPE}}}[$__rate_interval]))"


def rate(metric: str, *labels: str, where: str = "") -> str:
    """How much a counter increases per second, by policy and more labels."""
    return f"sum by ({_with_policy(labels)}) (rate({metric}{{{_matchers(where)}}}[$__rate_interval]))"


def quantile(q: float, histogram: str, *labels: str, where: str = "") -> str:
    """A quantile of a histogram, by policy and more labels."""
    return f"histogram_quantile({q}, {rate(f'{histogram}_bucket', *labels, 'le', where=where)})"


def _matchers(more: str) -> str:
    return f"{SCOPE}, {more}" if more else SCOPE


def _with_policy(labels: Iterable[str]) -> str:
    return ", ".join((POLICY, *labels))
