"""When tokens are fetched: before they end, once for all requests, and not too often when that fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest

from bellwether.adapters.kafka.tokens.token_grant import Grant
from bellwether.adapters.kafka.tokens.token_source import LONGEST_PAUSE_SECONDS, TokenSource, source_of
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Hidden, OAuth
from bellwether.ports.errors import BellwetherError, Transient, Unauthenticated
from waiting import limit

OAUTH = OAuth(
    destinations=ANYWHERE,
    token_endpoint="https://login.example.com/token",
    client_id="bellwether",
    client_secret="s3cr3t",
    names=(("token_endpoint", "spec.kafka.sasl.oauth.tokenEndpoint"),),
)
SOON = 5.0
"""Seconds that a test waits for a thread."""


class Endpoint:
    """Gives token after token, each for 100 seconds; ``failure`` is raised instead while it is set."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked = 0
        self.failure: BellwetherError | None = None
        self.go = threading.Event()
        self.go.set()
        self.answered = threading.Event()
        self.source = TokenSource(OAUTH, self.fetch, lambda: self.now)

    def fetch(self, _: OAuth, timeout_seconds: float) -> Grant:
        assert timeout_seconds > 0
        self.asked += 1
        self.go.wait(limit(SOON))
        self.answered.set()
        if self.failure is not None:
            raise self.failure
        return Grant(Hidden(f"token-{self.asked}"), 100.0)

    def token(self, wait_seconds: float = SOON) -> str:
        return str(self.source.token(wait_seconds).text)

    def settle(self) -> None:
        """Wait for the thread that fetches."""
        for thread in threading.enumerate():
            if thread.name == "token":
                thread.join(limit(SOON))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.go.set()
    made.settle()


def test_one_token_serves_until_most_of_its_life_is_over(endpoint: Endpoint):
    for endpoint.now in (0.0, 40.0, 79.0):
        assert endpoint.token() == "token-1"
    assert endpoint.asked == 1


def test_a_token_is_renewed_early_without_blocking_requests(endpoint: Endpoint):
    endpoint.token()
    endpoint.now = 80.0
    endpoint.go.clear()
    assert endpoint.token(wait_seconds=0) == "token-1", "the old one is good for a while yet"
    assert endpoint.token(wait_seconds=0) == "token-1"
    endpoint.go.set()
    endpoint.settle()
    assert endpoint.token(wait_seconds=0) == "token-2"
    assert endpoint.asked == 2


def test_token_that_is_about_to_end_is_not_handed_out(endpoint: Endpoint):
    endpoint.token()
    endpoint.now = 90.0
    assert endpoint.token() == "token-2"


def test_many_who_ask_at_once_share_one_fetch(endpoint: Endpoint):
    endpoint.go.clear()
    got: list[str] = []
    threads = [threading.Thread(target=lambda: got.append(endpoint.token())) for _ in range(8)]
    for thread in threads:
        thread.start()
    endpoint.go.set()
    for thread in threads:
        thread.join(limit(SOON))
    assert got == ["token-1"] * 8
    assert endpoint.asked == 1


def test_a_request_that_cannot_wait_fails_and_the_next_succeeds(endpoint: Endpoint):
    endpoint.go.clear()
    with pytest.raises(Transient, match=r"spec\.kafka\.sasl\.oauth\.tokenEndpoint .* has given no token yet"):
        endpoint.token(wait_seconds=0.01)
    endpoint.go.set()
    endpoint.settle()
    assert endpoint.token(wait_seconds=0) == "token-1"
    assert endpoint.asked == 1


def test_a_failure_reaches_every_caller_with_growing_pauses(endpoint: Endpoint):
    endpoint.failure = Unauthenticated("refuses client 'bellwether'")
    pauses = []
    for _ in range(7):
        asked, before = endpoint.asked, endpoint.now
        while endpoint.asked == asked:
            with pytest.raises(Unauthenticated, match="refuses client 'bellwether'"):
                endpoint.token()
            endpoint.settle()
            endpoint.now += 0.5
        pauses.append(endpoint.now - 0.5 - before)
    assert pauses[1:] == [0.5, 1.5, 3.5, 7.5, 15.5, LONGEST_PAUSE_SECONDS - 0.5]


def test_an_endpoint_that_is_back_is_found_without_a_restart(endpoint: Endpoint):
    endpoint.failure = Transient("cannot be reached")
    with pytest.raises(Transient):
        endpoint.token()
    endpoint.failure = None
    endpoint.now = 1.0
    assert endpoint.token() == "token-2"


def test_a_failed_renewal_leaves_the_token_that_still_is_good(endpoint: Endpoint):
    endpoint.token()
    endpoint.failure = Transient("cannot be reached")
    endpoint.now = 85.0
    assert endpoint.token() == "token-1"
    endpoint.settle()
    assert endpoint.token() == "token-1"
    endpoint.now = 95.0
    with pytest.raises(Transient, match="cannot be reached"):
        endpoint.token()


def test_token_that_broker_refuses_serves_until_next_one_is_there(endpoint: Endpoint):
    refused = endpoint.source.token(SOON)
    endpoint.source.refuse(refused)
    assert endpoint.token() == "token-1", "another broker may take it"
    endpoint.now = 1.0
    endpoint.token()
    endpoint.settle()
    assert endpoint.token() == "token-2"
    endpoint.source.refuse(refused)
    assert endpoint.token() == "token-2", "that was about another one"
    assert endpoint.asked == 2


def test_broker_that_refuses_every_token_does_not_keep_endpoint_busy(endpoint: Endpoint):
    fetched_at = []
    for _ in range(600):
        asked = endpoint.asked
        endpoint.source.refuse(endpoint.source.token(SOON))
        endpoint.settle()
        if endpoint.asked > asked:
            fetched_at.append(endpoint.now)
        endpoint.now += 0.5
    pauses = [later - sooner for sooner, later in pairwise(fetched_at)]
    assert pauses == sorted(pauses)
    assert pauses[-1] >= LONGEST_PAUSE_SECONDS


def test_failures_do_not_grow_a_traceback(endpoint: Endpoint):
    endpoint.failure = Transient("cannot be reached")
    caught = []
    for _ in range(2):
        with pytest.raises(Transient) as raised:
            endpoint.token()
        caught.append(raised.value)
    assert caught[0] is not caught[1]
    assert endpoint.failure not in caught


def test_seconds_left_are_counted_from_when_it_was_asked_for(endpoint: Endpoint):
    token = endpoint.source.token(SOON)
    endpoint.now = 30.0
    assert endpoint.source.seconds_left(token) == 70.0
    endpoint.now = 130.0
    assert endpoint.source.seconds_left(token) == 0.0


def test_same_credentials_have_same_source_and_renewed_ones_another():
    again = OAuth(
        destinations=ANYWHERE, token_endpoint=OAUTH.token_endpoint, client_id="bellwether", client_secret="s3cr3t"
    )
    renewed = OAuth(
        destinations=ANYWHERE, token_endpoint=OAUTH.token_endpoint, client_id="bellwether", client_secret="renewed"
    )
    assert source_of(OAUTH) is source_of(again)
    assert source_of(OAUTH) is not source_of(renewed)
