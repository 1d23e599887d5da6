"""``spec.maintenance``: planned restarts, and where to find the brokers' pods. Says where to find the brokers' pods."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bellwether.api.v1alpha1.base_model import Matching, Model, integer

_KEY = "([A-Za-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_VALUE = "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_LABEL = f"{_KEY}={_VALUE}"

Selector = Annotated[
    str,
    Matching(
        pattern=f"^{_LABEL}(,{_LABEL})*$",
        message="must be labels with their values, separated by commas, such as app=kafka,role=broker",
        longest=512,
    ),
]


class BrokerPods(Model):
    """The brokers' pods. One that is terminating or not ready has its broker drained, and hands it back once ready."""

    selector: Selector | None = Field(
        default=None,
        description="Labels of the brokers' pods and of no others, as kubectl takes them: app=kafka,role=broker. The"
        " pods stand in the policy's namespace, and their names end in a number. May be left out where"
        " spec.kafka.strimzi names the cluster, whose pods are known.",
    )
    first_broker_id: int = integer(
        0, 0, 2147483647, "Id of the broker in the pod whose name ends in -0; each further one has the next."
    )

    @property
    def labels(self) -> dict[str, str]:
        """The selector, label by label."""
        pairs = (one.partition("=") for one in (self.selector or "").split(",") if one)
        return {key: value for key, _, value in pairs}


class Maintenance(Model):
    """Planned work on brokers that nobody has to announce."""

    pods: BrokerPods | None = Field(
        default=None,
        description="Watch restarts by the state of the brokers' pods, as of a StatefulSet or a StrimziPodSet. Absent:"
        " only bellwether drain, or an override with purpose Maintenance, drains a broker.",
    )
