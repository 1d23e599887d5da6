"""Fields that several parts of a policy have: names of objects, AWS keys, identities, HTTP proxies and headers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.base_model import Matching, Model, Rule
from bellwether.destinations import PROXY

ResourceName = Annotated[
    str,
    Matching(
        "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        "must be the name of an object: lower case letters, digits, '-' and '.'",
        253,
    ),
]
REGION = ("^[a-z]{2,4}(-[a-z]{2,12}){1,3}-[0-9]{1,2}$", "must be an AWS region, such as eu-central-1", 32)
AwsRegion = Annotated[str, Matching(*REGION)]
IdentityName = Annotated[
    str,
    Matching("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "must be a name of lower case letters, digits and '-'", 63),
]
ProxyUrl = Annotated[
    str,
    Matching(PROXY, "must be http://host:port or https://host:port, without user, password or path", 512),
]
HeaderName = Annotated[
    str, Matching("^[A-Za-z0-9_-]+$", "must be the name of an HTTP header, such as X-Scope-OrgID", 64)
]
HeaderValue = Annotated[str, Matching("^[!-~]([ -~]*[!-~])?$", "must be printable ASCII, without outer blanks", 256)]

RESERVED_HEADERS = (
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
)
"""Headers that are set otherwise, or that decide how a request is framed."""


def workload_identity(whose: str) -> Any:
    """The name of an identity that the administrator has configured."""
    return Field(
        default=None,
        description=f"{whose} by an identity of Bellwether's own pods, by its name: one of the chart value"
        " workloadIdentities whose namespaces include the policy's.",
    )


class AwsMskIam(Model):
    """Amazon MSK with IAM, by an access key; its mechanism is OAUTHBEARER, too. For IRSA or EKS Pod Identity use
    workloadIdentity.
    """

    region: AwsRegion
    """AWS region of the Kafka cluster."""
    access_key_secret_name: ResourceName
    """Secret in the policy's namespace with an access key: aws_access_key_id, aws_secret_access_key, and
    aws_session_token for temporary ones.
    """


class HttpProxy(Model):
    """An HTTP proxy for these requests. Proxies of the environment are never used."""

    url: ProxyUrl
    """URL of the proxy: http://host:port or https://host:port."""
    credentials_secret_name: ResourceName | None = None
    """Secret in the policy's namespace with the keys username and password, as of type kubernetes.io/basic-auth. If
    unset, the proxy is used without a user.
    """


class Header(Model):
    """An HTTP header that is sent with each request."""

    name: HeaderName
    """Name of the header."""
    value: HeaderValue
    """Value of the header. It is no place for secrets."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"!(self.name.lowerAscii() in {list(RESERVED_HEADERS)})",
            message="is a header that cannot be set: use basicAuthSecretName or bearerTokenSecretName for credentials,"
            " and remove it",
            holds=lambda header: header.name.lower() not in RESERVED_HEADERS,
            field="name",
        ),
    )
