"""A token from a file: what is taken from it, when it is read again, and what is wrong with it."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import pytest

from bellwether.adapters.kafka.tokens.token_file import LONGEST_SECONDS, read
from bellwether.adapters.kafka.tokens.token_source import TokenSource
from bellwether.kafka_connection import TokenFile
from bellwether.ports.errors import Unauthenticated
from waiting import limit


def jwt(seconds: float, marker: str = "x") -> str:
    """An unsigned JSON Web Token that ends so many seconds from now."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + seconds, "sub": marker}).encode())
    return f"e30.{claims.decode().rstrip('=')}.c2ln"


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    return TokenFile(path=str(tmp_path / "token"), names=(("path", "spec.kafka.sasl.workloadIdentity (azure):"),))


def put(file: TokenFile, text: str | bytes) -> None:
    Path(file.path).write_bytes(text if isinstance(text, bytes) else text.encode())


def test_a_token_that_ends_is_used_no_longer(file: TokenFile):
    put(file, jwt(20))
    grant = read(file)
    assert grant.token == Path(file.path).read_text()
    assert 0 < grant.seconds <= 20
    assert grant.token not in repr(grant)


@pytest.mark.parametrize("token", ["opaque-token", jwt(86_400)], ids=["opaque", "JWT"])
def test_file_is_read_again_within_a_minute_whatever_token_lifetime(file: TokenFile, token: str):
    put(file, f"{token}\n")
    grant = read(file)
    assert (grant.token, grant.seconds) == (token, LONGEST_SECONDS)


def test_token_that_was_replaced_is_used_when_former_is_due(file: TokenFile):
    now = 0.0
    source = TokenSource(file, monotonic=lambda: now)
    put(file, "one")
    assert source.token(limit(10)).text == "one"
    put(file, "two")
    assert source.token(limit(10)).text == "one"
    now = LONGEST_SECONDS
    assert source.token(limit(10)).text == "two"


def test_a_token_that_a_broker_refuses_is_read_again_soon(file: TokenFile):
    now = 0.0
    source = TokenSource(file, monotonic=lambda: now)
    put(file, "one")
    source.refuse(source.token(limit(10)))
    put(file, "two")
    now = 5.0
    source.token(limit(10))
    for _ in range(100):
        if source.token(0).text == "two":
            break
        time.sleep(limit(0.05))
    assert source.token(0).text == "two"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, r"cannot be read \(No such file or directory\): mount the token there", id="no file"),
        pytest.param(b"", "is empty: write the token alone into it", id="empty"),
        pytest.param(b" \n", "is empty", id="blanks"),
        pytest.param(b"Bearer hunter2", "holds no bearer token", id="with a word before it"),
        pytest.param(b"hunter2\x01auth=x", "holds no bearer token", id="control characters"),
        pytest.param(b"hunter2\xff", "holds no bearer token", id="not text"),
        pytest.param(b"hunter2" * 20_000, "holds no bearer token", id="too long"),
        pytest.param(jwt(-5, "hunter2").encode(), "its token has expired: check what renews the file", id="expired"),
    ],
)
def test_a_file_without_a_token_is_named_and_not_shown(file: TokenFile, content: bytes | None, said: str):
    if content is not None:
        put(file, content)
    with pytest.raises(Unauthenticated, match=said) as caught:
        read(file)
    assert str(caught.value).startswith(f"spec.kafka.sasl.workloadIdentity (azure): {file.path}")
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value)
