"""OAUTHBEARER tokens, cached and renewed before they expire: one source per set of client credentials, file or role.

In: a ``kafka_connection.TokenOrigin``. Out: a token that is good for a while yet. Our conversations and both clients
ask the same source, so that one token serves all of them. Fetching happens in its own thread: a caller waits no longer
than it can, and what comes late serves the next.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from bellwether.adapters.kafka.tokens import token_endpoint, token_file
from bellwether.adapters.kafka.tokens.token_grant import Grant
from bellwether.kafka_connection import AwsMskIam, Hidden, OAuth, TokenOrigin
from bellwether.ports.errors import BellwetherError, Transient

FETCH_SECONDS = 10.0
RENEW_SHARE = 0.8
"""The share of its life after which a token is renewed, as librdkafka does it."""

MARGIN_SHARE, MARGIN_SECONDS = 0.1, 10.0
"""A token that ends within so little (the lesser of the two) is not handed out any more."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
_MOST_SOURCES = 1000
"""As many as an installation has policies: one that another policy takes away is fetched again for each connection."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token and when it ends, on the source's clock."""

    text: Hidden
    renew_at: float
    useless_at: float
    ends_at: float


def fetch_token(origin: TokenOrigin, timeout_seconds: float) -> Grant:
    """One token. Raises Transient, Unauthenticated or Terminal."""
    if isinstance(origin, AwsMskIam):
        # The AWS SDK is an extra, and takes half a second to import.
        from bellwether.adapters.kafka.tokens import aws_msk_iam  # noqa: PLC0415 - see above

        return aws_msk_iam.sign(origin)
    if isinstance(origin, OAuth):
        return token_endpoint.ask(origin, timeout_seconds)
    return token_file.read(origin)


class TokenSource:
    """The tokens of one origin. Safe to share between threads."""

    def __init__(
        self,
        origin: TokenOrigin,
        fetch: Callable[[TokenOrigin, float], Grant] = fetch_token,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._origin = origin
        self._fetch = fetch
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._fetching: threading.Thread | None = None
        self._failure: BellwetherError | None = None
        self._pause = 0.0
        self._again_at = float("-inf")
        self._refusal_pause = 0.0
        self._refused_at = float("-inf")

    def token(self, wait_seconds: float) -> Token:
        """A token that is good for now. Raises what fetching raises; Transient when that takes longer than the wait.

        After a failure the endpoint is left alone for a second, then two, and at most thirty.
        """
        with self._lock:
            now = self._monotonic()
            token = self._token
            if token is not None and now < token.renew_at:
                return token
            if self._fetching is None and now >= self._again_at:
                self._fetching = threading.Thread(target=self._renew, name="token", daemon=True)
                self._fetching.start()
            if token is not None and now < token.useless_at:
                return token
            fetching, failure = self._fetching, self._failure
        if fetching is None:
            raise _again(failure)
        fetching.join(wait_seconds)
        with self._lock:
            if self._token is not None and self._monotonic() < self._token.useless_at:
                return self._token
            failure = self._failure
        raise _again(None if fetching.is_alive() else failure, self._origin)

    def seconds_left(self, token: Token) -> float:
        """How long a token is good for."""
        return max(0.0, token.ends_at - self._monotonic())

    def refuse(self, token: Token) -> None:
        """A broker does not take this token: the next one is fetched soon, ever more rarely while that goes on.

        Until then it still serves: it may be that broker alone which cannot tell a good one.
        """
        with self._lock:
            now = self._monotonic()
            if self._token is not token or token.renew_at <= now:
                return
            if now - self._refused_at > 2 * LONGEST_PAUSE_SECONDS:
                self._refusal_pause = 0.0
            self._refusal_pause, self._refused_at = _longer(self._refusal_pause), now
            self._again_at = max(self._again_at, now + self._refusal_pause)
            self._token = replace(token, renew_at=now)

    def _renew(self) -> None:
        asked_at = self._monotonic()
        grant: Grant | None = None
        failure: BellwetherError | None = None
        try:
            grant = self._fetch(self._origin, FETCH_SECONDS)
        except BellwetherError as error:
            failure = error
        finally:
            with self._lock:
                self._fetching = None
                if grant is None:
                    self._failure = failure
                    self._wait_longer()
                else:
                    self._failure, self._pause = None, 0.0
                    self._token = _token(grant, asked_at)

    def _wait_longer(self) -> None:
        self._pause = _longer(self._pause)
        self._again_at = self._monotonic() + self._pause


_sources: OrderedDict[TokenOrigin, TokenSource] = OrderedDict()
_sources_lock = threading.Lock()


def source_of(origin: TokenOrigin) -> TokenSource:
    """The source for these credentials, shared in this process; a renewed secret has a new one."""
    with _sources_lock:
        source = _sources.get(origin)
        if source is None:
            source = _sources[origin] = TokenSource(origin)
            if len(_sources) > _MOST_SOURCES:
                _sources.popitem(last=False)
        _sources.move_to_end(origin)
        return source


def _longer(pause: float) -> float:
    return min(max(FIRST_PAUSE_SECONDS, 2 * pause), LONGEST_PAUSE_SECONDS)


def _token(grant: Grant, asked_at: float) -> Token:
    margin = min(MARGIN_SECONDS, MARGIN_SHARE * grant.seconds)
    ends = asked_at + grant.seconds
    return Token(grant.token, asked_at + RENEW_SHARE * grant.seconds, ends - margin, ends)


def _again(failure: BellwetherError | None, origin: TokenOrigin | None = None) -> BellwetherError:
    """A failure for one more caller: an exception that is raised twice grows its traceback."""
    if failure is not None:
        return type(failure)(str(failure))
    return Transient(f"{origin.where if origin else 'the origin of tokens'} has given no token yet")
