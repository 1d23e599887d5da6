"""Cases of every alert: when it fires, and the nearest harmless event with which it does not."""

from __future__ import annotations

from testkit.alerts.cases import availability, brokers, loads, operators, partitions, policies, probers
from testkit.alerts.cases.alert_case import Case

ALL: tuple[Case, ...] = tuple(
    case for module in (brokers, partitions, policies, operators, probers, loads, availability) for case in module.CASES
)
