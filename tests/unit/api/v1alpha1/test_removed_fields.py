"""A field that is gone is refused with what to do instead, and not with a name that looks similar."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.signal_source import SignalSource
from testkit.kubernetes import api_objects

REFERENCE = {"name": "a", "key": "b"}
PROMETHEUS = {"url": "https://p", "rules": [{"name": "r", "query": "up", "threshold": "1"}]}


def detection(kind: str, **fields: Any) -> dict[str, Any]:
    return {"detection": {kind: fields}}


def kafka(**fields: Any) -> dict[str, Any]:
    return {"kafka": api_objects.kafka(**fields)}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (kafka(clientId="x"), "spec.kafka.clientId: is always bellwether: remove it"),
        (kafka(brokerSessionTimeoutSeconds=9), "spec.kafka.brokerSessionTimeoutSeconds: is always 9, the default"),
        (kafka(userSecretRef={"name": "u"}), "spec.kafka.userSecretRef: has become userSecretName: set it"),
        (kafka(tls={"enabled": True}), "spec.kafka.tls.enabled: is gone: remove it"),
        (kafka(tls={"caSecretRef": REFERENCE}), "spec.kafka.tls.caSecretRef: has become caSecretName: set it"),
        (kafka(tls={"certificateSecretRef": REFERENCE}), "certificateSecretRef: has become certificateSecretName"),
        (kafka(tls={"keySecretRef": REFERENCE}), "spec.kafka.tls.keySecretRef: has become certificateSecretName"),
        (
            kafka(tls={}, sasl={**api_objects.SASL, "passwordSecretRef": REFERENCE}),
            "spec.kafka.sasl.passwordSecretRef: has become passwordSecretName: set it",
        ),
        (
            kafka(tls={}, sasl=api_objects.oauth_sasl(caSecretRef=REFERENCE)),
            "spec.kafka.sasl.oauth.caSecretRef: has become caSecretName: set it",
        ),
        (
            detection("prometheus", **PROMETHEUS),
            "spec.detection.prometheus: has become a SignalSource: write {apiVersion: bellwether.dev/v1alpha1, kind:"
            " SignalSource, metadata: {name: NAME}, spec: {prometheus: THESE FIELDS}} in this namespace, and"
            " signalSources: [{name: NAME}] here",
        ),
        (
            {"detection": {"plugins": [{"type": "Wear"}]}},
            "spec: {plugin: ONE OF THESE ENTRIES}} in this namespace, and signalSources: [{name: NAME}] here",
        ),
        (detection("alertmanager", alerts=["A"]), "spec.detection.alertmanager: has become the preset FiringAlerts"),
        ({"demotion": {"whenExceeded": "Hold"}}, "spec.demotion.whenExceeded: is always WorstFirst: remove it"),
        ({"demotion": {"maxFailureDomains": 1}}, "spec.demotion.maxFailureDomains: is always 1 rack: remove it"),
        (
            {"promotion": {"flapWindowSeconds": 0}},
            "spec.promotion.flapWindowSeconds: is always 3600: remove it, or set maxStabilizationSeconds to 0",
        ),
        ({"election": {"internalBatchSize": 50}}, "spec.election.internalBatchSize: is always 50: remove it"),
        ({"quarantine": {"afterSeconds": 30}}, "spec.quarantine.afterSeconds: is gone, as a broker"),
        (
            {"rebalance": {"objective": {"weights": {"consume": 0}}}},
            "spec.rebalance.objective.weights: has become traffic: set it to All, or to Produced",
        ),
    ],
)
def test_a_removed_field_is_named_with_the_remedy(spec: dict[str, Any], message: str):
    with pytest.raises(InvalidObject) as refused:
        LeadershipPolicy.read(api_objects.policy(**spec))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            api_objects.at_prometheus(bearerTokenSecretRef=REFERENCE),
            "spec.prometheus.bearerTokenSecretRef: has become bearerTokenSecretName",
        ),
        (api_objects.at_prometheus(caSecretRef=REFERENCE), "spec.prometheus.caSecretRef: has become caSecretName"),
        (api_objects.at_prometheus(timeoutSeconds=9), "timeoutSeconds: follows from periodSeconds: remove it"),
        (
            api_objects.prometheus(query="up", failureThreshold=2),
            "spec.prometheus.rules[0].failureThreshold: is always 3: remove it",
        ),
        (
            api_objects.plugin("Wear", staleAfterSeconds=60),
            "spec.plugin.staleAfterSeconds: follows from periodSeconds: remove it",
        ),
        (api_objects.plugin("Wear", successThreshold=1), "spec.plugin.successThreshold: is always 3: remove it"),
    ],
)
def test_a_removed_field_of_a_source_is_named_with_the_remedy(body: api_objects.Body, message: str):
    with pytest.raises(InvalidObject) as refused:
        SignalSource.read(body)
    assert message in str(refused.value)
