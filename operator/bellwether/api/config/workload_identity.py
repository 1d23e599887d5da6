"""Workload identities of the operator configuration: tokens and IAM roles of Bellwether's own pods, who may use them.

In: the YAML file of the administrator. Out: the identity that a policy names, if its namespace may use it. It also says
where its tokens may go, with which CAs and by which proxy: a policy's author could otherwise have the token of the
operator's ServiceAccount, or a request signed by its IAM role, sent to an address of their choice. Read by the
operator, the probers and the sampler whenever they make a connection.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import ConfigDict, Field, ValidationError

from bellwether.api.config.field_types import Checked, ConfigName, Namespaces, allows
from bellwether.api.v1alpha1.base_model import DISTINCT, Model, explain, refusal
from bellwether.api.v1alpha1.spec.credentials_spec import REGION
from bellwether.destinations import HOST, PORT, PROXY
from bellwether.ports.errors import Unauthenticated

VARIABLE = "BELLWETHER_WORKLOAD_IDENTITIES"
"""Environment variable with the path of the file."""

HostPattern = Annotated[
    str,
    Checked(
        r"^(\*|(\*\.)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)$",
        "must be a host name, '*.' and a domain, or '*' for all hosts, such as *.kafka.eu-central-1.amazonaws.com",
        253,
    ),
]
FilePath = Annotated[str, Checked(r"^/[^\s]*$", "must be the absolute path of a file", 1024)]
RoleArn = Annotated[
    str,
    Checked(
        r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$",
        "must be the ARN of an IAM role, such as arn:aws:iam::111122223333:role/orders",
        2048,
    ),
]
ProxyAddress = Annotated[
    str,
    Checked(PROXY, "must be http://host:port or https://host:port", 512),
]


class AwsRole(Model):
    """Amazon MSK with IAM, by the standard credential chain of the pod."""

    region: Annotated[str, Checked(*REGION), Field(description="AWS region of the Kafka cluster.")]
    role_arn: RoleArn | None = Field(
        default=None, description="IAM role to assume with the pod's credentials. If unset, they are used themselves."
    )
    proxy_url: ProxyAddress | None = Field(
        default=None,
        description="HTTP proxy for requests to AWS STS: http://host:port. If unset, none is used; proxies of the"
        " environment never are.",
    )


class PrometheusServer(Model):
    """The one server that gets the tokens."""

    url: Annotated[
        str,
        Checked(
            rf"^https://{HOST}(:{PORT})?(/[A-Za-z0-9._~/-]*)?$",
            "must be an https URL of host, port and path, such as https://thanos-querier.openshift-monitoring.svc:9091",
            512,
        ),
        Field(description="Base URL of the Prometheus HTTP API."),
    ]
    proxy_url: ProxyAddress | None = Field(
        default=None, description="HTTP proxy to reach the server by: http://host:port. If unset, none is used."
    )


class WorkloadIdentity(Model):
    """An identity that pods have by themselves. Exactly one of tokenFile and awsMskIam, and of hosts and prometheus."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["hosts"], "properties": {"hosts": {"minItems": 1}}},
                {"required": ["prometheus"]},
            ]
        }
    )

    namespaces: Annotated[
        Namespaces, Field(description="Namespaces whose policies may use the identity; ['*'] for all.")
    ]
    hosts: Annotated[
        tuple[HostPattern, ...],
        Field(
            max_length=32,
            description="Kafka brokers that may receive its tokens: names, or '*.' and a domain. ['*'] allows all, and"
            " the canary prober, which requires it: then people who may write policies in these namespaces can obtain"
            " a token.",
        ),
        DISTINCT,
    ] = ()
    prometheus: PrometheusServer | None = Field(
        default=None, description="The Prometheus server that gets its tokens, instead of Kafka; with tokenFile."
    )
    ca_file: FilePath | None = Field(
        default=None,
        description="File with the CAs (PEM) of the servers' certificates. If unset, those of the system are trusted.",
    )
    token_file: FilePath | None = Field(
        default=None,
        description="File with a bearer token that is renewed in place, such as a projected ServiceAccount token."
        " Mount it in the operator, the probers and the sampler.",
    )
    aws_msk_iam: AwsRole | None = Field(
        default=None, description="Amazon MSK with IAM: IRSA, EKS Pod Identity, or whatever else the pods have."
    )

    def model_post_init(self, _context: Any) -> None:
        """Reject an identity with none or both of the kinds, or of the destinations."""
        if (self.token_file is None) == (self.aws_msk_iam is None):
            raise refusal("set exactly one of tokenFile and awsMskIam", "tokenFile")
        if bool(self.hosts) == (self.prometheus is not None):
            raise refusal("set exactly one of hosts, for Kafka, and prometheus", "hosts")
        if self.prometheus is not None and self.token_file is None:
            raise refusal("prometheus takes the token of a tokenFile: set tokenFile instead of awsMskIam", "awsMskIam")


class WorkloadIdentities(Model):
    """All identities, by name."""

    workload_identities: dict[ConfigName, WorkloadIdentity] = Field(
        default_factory=dict, description="Workload identities by name."
    )

    @classmethod
    def read(cls, path: str) -> WorkloadIdentities:
        """Read a YAML file; nothing is configured for an empty path. Raises Unauthenticated."""
        if not path:
            return cls()
        try:
            content = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
        except (OSError, UnicodeDecodeError) as error:
            said = getattr(error, "strerror", None) or "it is not text"
            raise Unauthenticated(f"{VARIABLE} {path} cannot be read: {said}") from None
        except yaml.YAMLError:
            raise Unauthenticated(f"{VARIABLE} {path} is not YAML: correct it") from None
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise Unauthenticated(f"{VARIABLE} {path}: {explain(error, cls)}") from None

    def named(self, name: str, namespace: str, field: str) -> WorkloadIdentity:
        """The identity that ``field`` of a policy names, if its namespace may use it. Raises Unauthenticated.

        Names of other namespaces are not disclosed.
        """
        usable = {key: one for key, one in self.workload_identities.items() if allows(one.namespaces, namespace)}
        if name in usable:
            return usable[name]
        which = f"only {', '.join(sorted(usable))}" if usable else "none"
        raise Unauthenticated(
            f"{field} is {name!r}, but policies in namespace {namespace} may use {which}: the administrator configures"
            " workload identities with the chart value workloadIdentities"
        )
