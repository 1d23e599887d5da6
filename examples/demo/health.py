"""What Bellwether says, read as anyone would: the policy and the BrokerHealth objects, from the Kubernetes API.

Only shown in the table and used to know when to begin; what the demo judges it measures itself. Called by ``scenario``
and ``table``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes import client, config

POLL_SECONDS = 0.5
GROUP, VERSION = "bellwether.dev", "v1alpha1"


@dataclass(frozen=True, slots=True)
class BrokerWord:
    """One BrokerHealth as the table shows it; ``latencies`` are those of the last news, in ms, by signal type."""

    broker: int
    verdict: str = "Unknown"
    reason: str = ""
    message: str = ""
    since: str = ""
    demoted: bool = False
    held: bool = False
    latencies: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Words:
    """All that Bellwether says at one moment."""

    ready: str = ""
    brokers: Mapping[int, BrokerWord] = field(default_factory=dict)
    observing: bool = False
    """Whether the policy says that it only observes."""

    def of(self, broker: int) -> BrokerWord:
        """What is said of one broker; ``Unknown`` where nothing is."""
        return self.brokers.get(broker, BrokerWord(broker))

    def all_healthy(self, brokers: tuple[int, ...]) -> bool:
        """Whether every one of these brokers is said to be healthy."""
        return all(self.of(broker).verdict == "Healthy" for broker in brokers)


def condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """A condition by type; empty when there is none."""
    return next((c for c in status.get("conditions", ()) if c.get("type") == kind), {})


def broker_word(body: Mapping[str, Any]) -> BrokerWord:
    """What one BrokerHealth object says."""
    status = body.get("status") or {}
    verdict = status.get("verdict") or {}
    latencies: dict[str, float] = {}
    for signal in status.get("signals", ()):
        if (microseconds := signal.get("latencyMicroseconds")) is not None:
            latencies[signal["type"]] = max(latencies.get(signal["type"], 0.0), microseconds / 1000)
    return BrokerWord(
        broker=int(body["spec"]["brokerId"]),
        verdict=verdict.get("state", "Unknown"),
        reason=verdict.get("reason", ""),
        message=verdict.get("message", ""),
        since=verdict.get("since", ""),
        demoted=condition(status, "Demoted").get("status") == "True",
        held=condition(status, "Quarantined").get("status") == "True",
        latencies=latencies,
    )


def policy_word(body: Mapping[str, Any]) -> str:
    """What a policy says of itself."""
    ready = condition(body.get("status") or {}, "Ready")
    return f"{ready['reason']}: {ready.get('message', '')}" if ready else "no status yet"


class Health:
    """A thread that reads twice a second; ``words`` is the last reading."""

    def __init__(self, kubeconfig: Path, policy: str, namespace: str) -> None:
        self._api = client.CustomObjectsApi(config.new_client_from_config(config_file=str(kubeconfig)))
        self._policy = policy
        self._namespace = namespace
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self.words = Words()

    def __enter__(self) -> Health:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def look(self) -> Words:
        """Read once. Raises what the Kubernetes client raises."""
        found = self._api.list_namespaced_custom_object(
            GROUP, VERSION, self._namespace, "brokerhealths", _request_timeout=5
        )
        policy = self._api.get_namespaced_custom_object(
            GROUP, VERSION, self._namespace, "leadershippolicies", self._policy, _request_timeout=5
        )
        brokers = [broker_word(body) for body in found["items"]]
        observing = (policy.get("status") or {}).get("mode") == "Observe"
        return Words(policy_word(policy), {word.broker: word for word in brokers}, observing)

    def change(self, **fields: object) -> None:
        """Write fields of the policy's ``spec``, as a person would. Raises what the Kubernetes client raises."""
        self._api.patch_namespaced_custom_object(
            GROUP,
            VERSION,
            self._namespace,
            "leadershippolicies",
            self._policy,
            {"spec": fields},
            _content_type="application/merge-patch+json",
            _request_timeout=5,
        )

    def _look_on(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            try:
                self.words = self.look()
            except Exception as problem:  # whatever it is, the table shows it and the next reading tries again
                self.words = Words(f"cannot read the API: {problem}", self.words.brokers)
