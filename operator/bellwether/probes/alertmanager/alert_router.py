"""Pass notifications on to the policies that they concern.

In: bodies that the webhook was sent, from its thread, and the path that they were sent to. Out: notifications for the
``Alerts`` of each policy. A notification for a named policy goes to that one. Any other goes to each policy with
matchers, which say whose Kafka cluster an alert is about: a policy without them takes only what is sent to it by name.
Called by ``bellwether probe alertmanager``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import structlog

from bellwether.probes.alertmanager.alert_payload import Notification, read
from bellwether.probes.alertmanager.alert_receiver import Alerts, NotReady

Named = tuple[str, str]
"""Namespace and name of a policy."""


class AlertRouter:
    """The policies that are served. ``default`` is the policy of notifications that name none.

    ``unclaimed`` is called with the number of alerts that no policy names.
    """

    def __init__(self, default: Named | None, unclaimed: Callable[[int], None]) -> None:
        self._default = default
        self._unclaimed = unclaimed
        self._lock = threading.Lock()
        self._policies: dict[Named, Alerts] = {}
        self._awaited: frozenset[Named] | None = None
        self._added: set[Named] = set()
        self._begun = False
        self._log = structlog.get_logger(__name__)
        self._said: set[Named] = set()

    def expect(self, policies: frozenset[Named]) -> None:
        """These policies are, or will be, served: a notification is not over before each of them was asked."""
        with self._lock:
            self._awaited = policies
            self._added &= policies
            self._begun = self._begun or not self._unasked

    def add(self, policy: Named, alerts: Alerts) -> None:
        """Pass on to this policy, too."""
        with self._lock:
            self._policies[policy] = alerts
            self._added.add(policy)
            self._begun = self._begun or not self._unasked

    def remove(self, policy: Named) -> None:
        """Pass on to it no longer."""
        with self._lock:
            self._policies.pop(policy, None)

    @property
    def _unasked(self) -> bool:
        """Whether policies are not known, or one of them is not served yet: a notification has to be sent again."""
        return self._awaited is None or bool(self._awaited - self._added)

    def problems(self) -> list[str]:
        """Why no notification would be taken, although a policy names alerts; one that takes them is enough.

        From the start until each policy was asked once, all notifications are refused. Later a policy that is new
        refuses its own for a moment, which must not take the webhook from the others.
        """
        with self._lock:
            served = list(self._policies.values())
            began = self._begun if self._default is None else self._default in self._policies
        waiting = [alerts for alerts in served if not alerts.idle]
        if not began:
            return ["not every policy is served yet"]
        if not waiting or any(alerts.ready() for alerts in waiting):
            return []
        return ["not reporting for any policy now"]

    def receive(self, body: bytes, policy: Named | None = None) -> None:
        """Take one notification. Raises ValueError for one that is not understood, and NotReady if it has to be sent
        again because a policy that it concerns could not take it; the others have.
        """
        found = read(body)
        to = policy or self._default
        if to is not None:
            self._receive_for(to, found)
            return
        with self._lock:
            served = list(self._policies.values())
            awaited = self._unasked
        claimed: set[int] = set()
        refused = NotReady("the policies are not known yet") if awaited else None
        for alerts in served:
            if alerts.unconfigured:
                refused = NotReady("the settings of a policy are not known yet")
                continue
            concerned = {n: alert for n, alert in enumerate(found.alerts) if alerts.concerned(alert)}
            claimed |= concerned.keys()
            if concerned or found.left_out:
                try:
                    alerts.receive(replace(found, alerts=tuple(concerned.values())))
                except NotReady as error:
                    refused = error if concerned else refused
        self._unclaimed(len(found.alerts) - len(claimed))
        if refused is not None:
            raise refused

    def _receive_for(self, policy: Named, found: Notification) -> None:
        with self._lock:
            alerts = self._policies.get(policy)
        if alerts is None:
            if policy not in self._said and len(self._said) < 10:
                self._said.add(policy)
                self._log.warning("notification_for_unknown_policy", policy="/".join(policy)[:200])
            raise NotReady(f"policy {'/'.join(policy)} is not served")
        alerts.receive(found)
