"""``spec.maintenance``: detection of pod restarts, and how to find the broker pods."""

from __future__ import annotations

from typing import Annotated

from bellwether.api.v1alpha1.base_model import Matching, Model, integer

_KEY = "([A-Za-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_VALUE = "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_LABEL = f"{_KEY}={_VALUE}"

Selector = Annotated[
    str,
    Matching(
        pattern=f"^{_LABEL}(,{_LABEL})*$",
        message="must be labels with values, separated by commas, such as app=kafka,role=broker",
        longest=512,
    ),
]


class BrokerPods(Model):
    """Detect restarts by the state of the broker pods, for example of a StatefulSet or StrimziPodSet: a broker is
    drained while its pod terminates or its container there is not ready, and its leaders are restored afterwards. If
    unset, a broker is drained only by 'bellwether drain' or an override with purpose Maintenance.
    """

    selector: Selector | None = None
    """Labels of the broker pods, and of no other pods, separated by commas: app=kafka,role=broker. The pods must be in
    the policy's namespace. Required unless spec.kafka.strimzi is set, whose pods are known.
    """
    first_broker_id: int | None = integer(None, 0, 2147483647)
    """Node id of the broker in the pod whose name ends in -0; pod -1 has the next id, and so on. Unset, pods are
    matched to brokers by the hosts that the brokers advertise, by the label bellwether.dev/broker-id, or by the number
    of their names if every broker is matched exactly once by it.
    """

    @property
    def labels(self) -> dict[str, str]:
        """The selector as a mapping of labels."""
        pairs = (one.partition("=") for one in (self.selector or "").split(",") if one)
        return {key: value for key, _, value in pairs}


class Maintenance(Model):
    """Detect unannounced pod restarts. If unset, a restart looks like any other failure."""

    pods: BrokerPods | None = None
