"""A right that is missing: what is done without it, what does not come about, and how the lack is reported.

Used by the tests that take each verb of the chart's roles away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.adapters.kubernetes.permissions import Need, Where
from testkit.kubernetes.service_accounts import Crew
from testkit.processes.sites import POLICY, condition

Do = Callable[[Crew], Any]
Key = tuple[Where, str, str]
"""Where, which resource, which verb."""

NEWS = "bellwether.dev/news"


def nothing(_crew: Crew) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Lack:
    """``before`` with all rights, ``then`` without the verb; ``goal`` is what then does not come about.

    ``recovers``: it does once the verb is granted again, without a restart.
    """

    goal: Callable[[Crew], bool]
    then: Do
    before: Do = nothing
    recovers: bool = True

    def shown(self, crew: Crew, account: str, key: Key, group: str) -> None:
        """Take the verb away and see that the lack is reported and the goal missed. Raises AssertionError."""
        where, resource, verb = key
        namespace = crew.home if where is Where.LEASES else crew.site.namespace
        self.before(crew)
        with crew.accounts.without(account, group, resource, verb, namespace):
            self.then(crew)
            what = f"the lack of {verb} on {resource} is reported"
            crew.site.until(lambda: noted(crew, group, resource, verb), 60, what, crew.site.logs)
            # A watch that is refused begins again with a list, which may show what the watch would have.
            assert verb == "watch" or not self.goal(crew), "it came about all the same"
        if self.recovers:
            with suppress(NotFound):  # any news: a settled policy's next turn may be a minute away
                news = {"metadata": {"annotations": {NEWS: "granted"}}}
                crew.site.api.merge(POLICIES, crew.site.namespace, POLICY, news)
            crew.site.until(lambda: self.goal(crew), 60, "granted again, it goes on without a restart", crew.site.logs)


def needs(table: Iterable[Need]) -> dict[Key, str]:
    """Group of the API by where, resource and verb."""
    return {(need.where, need.resource, verb): need.group for need in table for verb in need.verbs}


def noted(crew: Crew, group: str, resource: str, verb: str) -> bool:
    """Whether log, status or an entry hold our client's words on the lack, or the API server's as watches pass them on.

    What is said of all permissions at the start does not count.
    """
    ours = rf"lacks the verb '{verb}' on {resource} in (API group {re.escape(group)}|the core API group)"
    theirs = rf"cannot {verb} resource \W*{resource}\W* in API group"
    said = [process.log.read_text() for process in crew.site.processes]
    policy = crew.site.api.find(POLICIES, crew.site.namespace, POLICY)  # read once: it may be on its way out
    if policy is not None:
        status = policy.get("status") or {}
        said += [
            str(condition(status, "Ready").get("message")),
            str(crew.site.rebalance()),
            str(crew.entry(1, "Prometheus")),
        ]
    return re.search(f"{ours}|{theirs}", "\n".join(said)) is not None
