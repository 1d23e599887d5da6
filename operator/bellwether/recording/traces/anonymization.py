"""Anonymize a trace: replace names by digests, so that it can be shown to others.

In: the values that a recorder has seen. Out: the same values, where names of topics, sources, racks and the cluster are
digests, and free text is removed: a client library's message may contain anything. A digest is keyed by the
cluster's id, so it is the same in every trace of one cluster, and without that id names cannot be guessed.
Called by the recorder; nothing is taken out twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.cluster import Broker, Cluster, Partition
from bellwether.core.model.undo_record import DemotedBroker
from bellwether.core.signals import Override, Signal
from bellwether.recording.traces.merge_patch import Document, Json

_KEPT_WORDS = frozenset(
    {"state", "reason", "since", "status", "restartedAt", "resumedAt", "last", "knownState", "explainedAt"}
)


class Anonymity:
    """The digests of one cluster's names."""

    def __init__(self, cluster_id: str) -> None:
        self._key = hashlib.blake2b(cluster_id.encode(), digest_size=32).digest()
        self._known: dict[tuple[str, str], str] = {}

    def name(self, kind: str, text: str) -> str:
        """``kind`` and a digest of ``text``."""
        known = self._known.get((kind, text))
        if known is None:
            digest = hashlib.blake2b(f"{kind}/{text}".encode(), digest_size=6, key=self._key).hexdigest()
            known = self._known[kind, text] = f"{kind}-{digest}"
        return known

    def signals(self, signals: Iterable[Signal]) -> tuple[Signal, ...]:
        """Signals with their sources, directories and listeners as digests, and without their messages."""
        return tuple(
            replace(
                s,
                source=self.name("source", s.source),
                message="",
                directory=self.name("directory", s.directory) if s.directory else "",
                listeners=tuple(replace(one, name=self.name("listener", one.name)) for one in s.listeners),
            )
            for s in signals
        )

    def overrides(self, overrides: Iterable[Override]) -> tuple[Override, ...]:
        """Overrides without their reasons."""
        return tuple(replace(o, reason="") for o in overrides)

    def pods(self, pods: Mapping[int, Pod]) -> dict[int, Pod]:
        """Pods with their names as digests."""
        return {broker: replace(pod, name=self.name("pod", pod.name)) for broker, pod in pods.items()}

    def demoted(self, demoted: Mapping[int, DemotedBroker]) -> dict[int, DemotedBroker]:
        """Demotions without their messages."""
        return {broker: replace(one, message="") for broker, one in demoted.items()}

    def cluster(self, cluster: Cluster) -> Cluster:
        """A cluster with its topics, racks and its own id as digests; Kafka's internal topics keep their names."""
        return Cluster(
            self.name("cluster", cluster.cluster_id),
            {b.id: self._broker(b) for b in cluster.brokers.values()},
            tuple(self._partition(p) for p in cluster.partitions),
            removed=cluster.removed,
            serving=cluster.serving,
        )

    def said(self, said: Document) -> dict[str, Json]:
        """The operator's status of a broker: health state, reason, times and numbers."""
        kept: dict[str, Json] = {}
        for key, value in said.items():
            if isinstance(value, Mapping):
                kept[key] = self.said(value)
            elif isinstance(value, bool | int | float) or key in _KEPT_WORDS:
                kept[key] = value
        return kept

    def settings(self, settings: Document) -> dict[str, Json]:
        """A policy's settings with the names of sources as in the signals."""
        detection: dict[str, Any] = dict(settings.get("detection") or {})
        if "externalReachability" in detection:
            reachability = dict(detection["externalReachability"])
            if names := reachability.get("listeners"):
                reachability["listeners"] = [self.name("listener", name) for name in names]
            reachability["vantages"] = [self.name("source", v) for v in reachability.get("vantages") or ()]
            detection["externalReachability"] = reachability
        named = detection.get("signalSources") or ()
        detection["signalSources"] = [{"name": self.name("source", one["name"])} for one in named]
        sources = [
            {"name": self.name("source", one["name"]), "spec": self._source(one["spec"])}
            for one in settings.get("sources") or ()
        ]
        return {**settings, "detection": detection, "sources": sources}

    def _source(self, spec: Document) -> Document:
        if "prometheus" not in spec:
            return spec
        hidden = {"query": "left out", "preset": "", "selector": None, "brokerLabel": "broker"}
        rules = [{**r, **hidden, "name": self.name("source", r["name"])} for r in spec["prometheus"]["rules"]]
        return {"prometheus": {**spec["prometheus"], "rules": rules}}

    def _broker(self, broker: Broker) -> Broker:
        rack = None if broker.rack is None else self.name("rack", broker.rack)
        return Broker(broker.id, rack, fenced=broker.fenced)

    def _partition(self, partition: Partition) -> Partition:
        topic = partition.topic if partition.internal else self.name("topic", partition.topic)
        return replace(partition, topic=topic, topic_id=self.name("id", partition.topic_id))
