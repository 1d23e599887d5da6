"""``spec.kafka.strimzi``: a Strimzi cluster by name, from which the connection is discovered."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bellwether.api.v1alpha1.base_model import Matching, Model

ResourceName = Annotated[
    str,
    Matching(
        "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        "must be the name of an object: lower case letters, digits, '-' and '.'",
        253,
    ),
]
Namespace = Annotated[
    str,
    Matching(
        "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "must be the name of a namespace: lower case letters, digits and '-'", 63
    ),
]
ListenerName = Annotated[
    str, Matching("^[a-z0-9]{1,11}$", "must be the name of a listener: up to 11 lower case letters and digits", 11)
]


class Strimzi(Model):
    """A Kafka cluster that Strimzi runs. Changes of its listeners, certificates and users are followed."""

    cluster_name: Annotated[ResourceName, Field(description="Name of the Kafka resource.")]
    namespace: Namespace | None = Field(
        default=None,
        description="Namespace of the Kafka and KafkaUser resources. If unset, that of the policy. A Kafka resource"
        " in another namespace must permit it: its annotation bellwether.dev/policies-from lists the"
        " namespaces whose policies may use it, separated by commas.",
    )
    listener: ListenerName | None = Field(
        default=None,
        description="Name of the listener to connect to. If unset, the first internal listener that supports the"
        " user's authentication, preferably one with TLS.",
    )
    user_name: ResourceName | None = Field(
        default=None,
        description="Name of the KafkaUser to connect as, with authentication tls or scram-sha-512. If unset, the"
        " KafkaUser named bellwether if it exists; otherwise connections are not authenticated.",
    )
