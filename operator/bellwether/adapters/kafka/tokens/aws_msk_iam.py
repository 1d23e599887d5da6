"""Tokens of Amazon MSK's IAM authentication: requests of ``kafka-cluster:Connect``, presigned (SigV4) and not sent.

In: a ``kafka_connection.AwsMskIam``. Out: the signed URL in base64, which the broker has checked by IAM, or Transient,
Unauthenticated or Terminal. botocore signs, finds the credentials and renews them; it comes with the extra ``aws``.
Called by ``token_source``, from a thread of its own: requests to STS take seconds.
"""

from __future__ import annotations

import base64
import logging
import threading
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from bellwether.adapters.http_sessions import proxied, proxy_title
from bellwether.adapters.kafka.tokens.token_grant import Grant
from bellwether.extras import needed_extra
from bellwether.kafka_connection import AwsMskIam, Hidden, HttpProxy
from bellwether.ports.errors import BellwetherError, Terminal, Transient, Unauthenticated

try:
    import botocore.exceptions as aws
    import botocore.session
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest
    from botocore.config import Config
    from botocore.credentials import (
        AssumeRoleCredentialFetcher,
        Credentials,
        DeferredRefreshableCredentials,
    )
except ModuleNotFoundError as error:
    raise Terminal(f"Amazon MSK with IAM {needed_extra(error)}") from None

TOKEN_SECONDS = 900
"""The lifetime of a token that MSK's own clients ask for."""

USED_SECONDS = 600.0
"""For how long it is used: it ends with the credentials that signed it, which botocore renews ten minutes before."""

# botocore logs requests and answers with what is secret in them. What matters to a caller comes as an error.
logging.getLogger("botocore").setLevel(logging.CRITICAL)

SERVICE = "kafka-cluster"
_STS_SECONDS = 4.0
_SESSION_NAME = "bellwether"
_sessions = threading.Lock()


def sign(origin: AwsMskIam) -> Grant:
    """One token. Raises Transient, Unauthenticated (no credentials, or AWS rejects them) or Terminal."""
    try:
        return Grant(_token(origin), USED_SECONDS)
    except BellwetherError:
        raise
    except Exception as error:
        # Of an error of botocore only the class is passed on: its text may repeat what was sent.
        raise _failure(error, origin) from None


def _token(origin: AwsMskIam) -> Hidden:
    credentials = _credentials(origin).get_frozen_credentials()
    url = f"https://kafka.{origin.region}.amazonaws.com/?{urlencode({'Action': f'{SERVICE}:Connect'})}"
    request = AWSRequest(method="GET", url=url)
    SigV4QueryAuth(credentials, SERVICE, origin.region, expires=TOKEN_SECONDS).add_auth(request)
    # As MSK's own signers do, after signing: CloudTrail shows it.
    signed = f"{request.url}&{urlencode({'User-Agent': _SESSION_NAME})}"
    return Hidden(base64.urlsafe_b64encode(signed.encode()).decode().rstrip("="))


def _credentials(origin: AwsMskIam) -> Any:
    if origin.access_key_id:
        return Credentials(origin.access_key_id, origin.secret_access_key, origin.session_token or None)
    found = _ambient(origin.region, origin.role_arn, origin.proxy)
    if found is None:
        _ambient.cache_clear()  # they may be mounted later
        raise Unauthenticated(
            f"{origin.where} credentials are nowhere in the standard chain: give the ServiceAccount an IAM role (IRSA"
            " or EKS Pod Identity), or use an access key"
        )
    return found


@lru_cache(16)
def _ambient(region: str, role_arn: str, proxy: HttpProxy | None) -> Any:
    """Credentials of the standard chain, or of a role that is assumed with them; they renew themselves."""
    config = Config(  # an empty mapping of proxies means none, also none of the environment
        proxies=proxied(proxy),
        connect_timeout=_STS_SECONDS,
        read_timeout=_STS_SECONDS,
        retries={"total_max_attempts": 1},
    )
    with _sessions:  # botocore sets them up one at a time
        session = botocore.session.Session()
        session.set_config_variable("region", region)
        session.set_default_client_config(config)
        own = session.get_credentials()
    if own is None or not role_arn:
        return own
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=session.create_client,
        source_credentials=own,
        role_arn=role_arn,
        extra_args={"RoleSessionName": _SESSION_NAME},
    )
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


def _failure(error: Exception, origin: AwsMskIam) -> BellwetherError:
    """What a failure of botocore means. A set of credentials that failed is looked for again."""
    _ambient.cache_clear()
    if isinstance(error, aws.ClientError):
        code = str(error.response.get("Error", {}).get("Code", ""))[:64]
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if status >= 500 or code in ("Throttling", "RequestLimitExceeded", "IDPCommunicationError"):
            return Transient(f"{origin.where} STS answers {code or status}")
        what = f"the trust policy of {origin.role_arn}" if origin.role_arn else "the role and its trust policy"
        return Unauthenticated(f"{origin.where} STS refuses the credentials ({code or status}): check {what}")
    if isinstance(error, aws.ProxyConnectionError):
        return Transient(f"{origin.where} STS cannot be reached through {proxy_title(origin.proxy)}")
    if isinstance(error, aws.HTTPClientError | aws.ConnectionError):
        return Transient(f"{origin.where} credentials cannot be fetched now ({type(error).__name__})")
    if isinstance(error, aws.BotoCoreError | OSError):
        return Unauthenticated(
            f"{origin.where} credentials cannot be used ({type(error).__name__}): check the IAM role of the"
            " ServiceAccount and its token, or the access key"
        )
    return Terminal(f"{origin.where} tokens cannot be signed ({type(error).__name__})")
