"""Request one token from an OAuth token endpoint by client credentials (RFC 6749, 4.4), bounded in time and size.

In: who asks, and where. Out: the token and how many seconds it is good for, or Transient, Unauthenticated or Terminal
with a sentence that names the field at fault, the same for the same trouble, and holds neither secret nor token. Called
by ``token_source``, from a thread of its own: looking up a name obeys no deadline.
"""

from __future__ import annotations

import base64
import time
from urllib.parse import quote

import requests
import urllib3.exceptions

from bellwether.adapters.http_sessions import proxy_failure, read_body, session_of
from bellwether.adapters.kafka.tokens.token_grant import TOKEN, Grant, claims_of, json_object, number
from bellwether.kafka_connection import Hidden, OAuth
from bellwether.ports.errors import BellwetherError, Terminal, Transient, Unauthenticated

_BODY_LIMIT = 256 * 1024
_ERRORS = {"invalid_request", "invalid_client", "invalid_grant", "invalid_scope", "unauthorized_client"}
"""RFC 6749, 5.2."""

_LONGEST_SECONDS = 366 * 86400.0


def ask(oauth: OAuth, timeout_seconds: float) -> Grant:
    """One token. Raises Transient, Unauthenticated (who we are is not believed) or Terminal."""
    deadline = time.monotonic() + timeout_seconds
    form = {"grant_type": "client_credentials"} | ({"scope": oauth.scope} if oauth.scope else {})
    where = oauth.where
    try:
        with (
            session_of(oauth.proxy, oauth.ca_file, oauth.destinations) as session,
            session.post(
                oauth.token_endpoint,
                data=form,
                headers={"Authorization": _basic(oauth)},
                timeout=(timeout_seconds, timeout_seconds),
                stream=True,
                allow_redirects=False,
            ) as response,
        ):
            text = f"{where} answers with more than {_BODY_LIMIT // 1024} KiB: it is no token endpoint"
            body = read_body(response, _BODY_LIMIT, deadline, text)
            if response.status_code != 200:
                raise _refusal(response.status_code, body, oauth, where)
            return _grant(body, where)
    except requests.exceptions.SSLError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            trust = oauth.called("ca_file") if oauth.ca_file else f"the system's ({oauth.called('ca_file')} is not set)"
            text = f"{where}: its certificate does not verify against the authorities of {trust}, or has expired, or"
            raise Unauthenticated(f"{text} is another host's: check both") from None
        raise Terminal(f"{where} does not complete a TLS handshake: check the URL") from None
    except (requests.Timeout, urllib3.exceptions.TimeoutError):
        raise Transient(f"{where} does not answer in time") from None
    except requests.exceptions.ProxyError as error:
        raise proxy_failure(error, oauth.proxy, where) from None
    except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema):
        raise Terminal(f"{where} is not the URL of an HTTPS server") from None
    except (requests.RequestException, urllib3.exceptions.HTTPError):
        raise Transient(f"{where} cannot be reached, or ends the connection") from None
    except OSError as error:
        why = error.strerror or "unreadable"
        raise Unauthenticated(f"{oauth.called('ca_file')} is not a readable PEM file: {why}") from None


def _basic(oauth: OAuth) -> str:
    """RFC 6749, 2.3.1: both are encoded as forms are, before base64."""
    pair = f"{quote(oauth.client_id, safe='')}:{quote(oauth.client_secret, safe='')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _refusal(status: int, body: bytes, oauth: OAuth, where: str) -> BellwetherError:
    """What an answer other than 200 means; its description is left out, as it may repeat what was sent."""
    if status == 429 or status >= 500:
        return Transient(f"{where} answers HTTP {status}")
    said = json_object(body).get("error")
    code = said if isinstance(said, str) and said in _ERRORS else ""
    if status == 401 or code in ("invalid_client", "unauthorized_client"):
        names = f"{oauth.called('client_id')} and {oauth.called('client_secret')}"
        return Unauthenticated(f"{where} refuses client {oauth.client_id!r} ({code or status}): check {names}")
    if code == "invalid_scope":
        return Unauthenticated(f"{where} refuses the scope {oauth.scope!r}: check {oauth.called('scope')}")
    return Terminal(f"{where} answers HTTP {status}{f' ({code})' if code else ''}: check the URL")


def _grant(body: bytes, where: str) -> Grant:
    """RFC 6749, 5.1."""
    answer = json_object(body)
    token, kind = answer.get("access_token"), answer.get("token_type", "Bearer")
    if not isinstance(token, str) or not TOKEN.fullmatch(token):
        raise Terminal(f"{where} answers without an access_token (RFC 6749, 5.1): it is no token endpoint")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise Terminal(f"{where} returns tokens that are not of type Bearer, the only type that Kafka accepts")
    seconds = answer.get("expires_in")
    if seconds is None:
        claims = claims_of(token)
        ends, issued = number(claims.get("exp")), number(claims.get("iat"))
        seconds = ends - issued if ends is not None and issued is not None else None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_SECONDS:
        raise Terminal(f"{where} returns a token without a valid expires_in: the time of the next request is unknown")
    return Grant(Hidden(token), float(seconds))
