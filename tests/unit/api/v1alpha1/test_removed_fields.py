"""A field that is gone is refused with what to do instead, and not with a name that looks similar."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from testkit.kubernetes import api_objects

PROMETHEUS = {"url": "https://p", "rules": [{"name": "r", "query": "up", "threshold": "1"}]}


def detection(kind: str, **fields: Any) -> dict[str, Any]:
    return {"detection": {kind: fields}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
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
        (detection("externalReachability", listener="A"), "externalReachability.listener: has become listeners: set"),
    ],
)
def test_a_removed_field_is_named_with_the_remedy(spec: dict[str, Any], message: str):
    with pytest.raises(InvalidObject) as refused:
        LeadershipPolicy.read(api_objects.policy(**spec))
    assert message in str(refused.value)
