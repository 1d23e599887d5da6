"""SignalSources of a policy: read those that it names, and write whether a prober can use one.

Called by the operator, the probers, and commands that forecast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bellwether.adapters.kubernetes.api_client import SIGNAL_SOURCES, KubernetesClient
from bellwether.adapters.kubernetes.kept_fields import kept_list
from bellwether.api.v1alpha1.base_model import timestamp
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.signal_source import SignalSource
from bellwether.api.v1alpha1.status.status_conditions import condition
from bellwether.core.reasons import Reason
from bellwether.ports.clock import Clock

MESSAGE_LIMIT = 1024


def with_sources(
    api: KubernetesClient, policy: LeadershipPolicy, namespace: str = "", changed: Iterable[Mapping[str, Any]] = ()
) -> LeadershipPolicy:
    """The policy with the SignalSources that it names, as in the API or as ``changed``; one request, or none.

    Raises Transient or Terminal.
    """
    if not policy.spec.detection.signal_sources:
        return policy
    return policy.with_sources((*kept_list(api, SIGNAL_SOURCES, namespace or policy.metadata.namespace), *changed))


def report(api: KubernetesClient, source: SignalSource, problem: str, clock: Clock, used: str) -> None:
    """Write the condition Ready of a source, if that is new: False with a ``problem``, True with how it is ``used``.

    Raises Transient or Terminal.
    """
    ready, message = ("False", problem[:MESSAGE_LIMIT]) if problem else ("True", used[:MESSAGE_LIMIT])
    before, metadata = condition(source.status.conditions, "Ready"), source.metadata
    if before is not None and (before.status, before.message) == (ready, message):
        return
    since = before.last_transition_time if before is not None and before.status == ready else clock.now()
    said = {
        "type": "Ready",
        "status": ready,
        "reason": str(Reason.NO_EVIDENCE if problem else Reason.UP_TO_DATE),
        "message": message,
        "observedGeneration": metadata.generation,
        "lastTransitionTime": timestamp(since),
    }
    api.merge(SIGNAL_SOURCES, metadata.namespace, metadata.name, {"status": {"conditions": [said]}}, sub="status")
