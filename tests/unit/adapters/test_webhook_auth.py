"""Tokens and certificates of the webhook: files that cannot be used are named, and no token is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellwether.adapters.webhook_auth import ServerFiles, TokenFile
from bellwether.ports.errors import Terminal
from realparts.tls import Authority

TOKEN = "a-token-that-nobody-guesses"


@pytest.mark.parametrize(
    "content",
    [b"", b"fifteen-letters", b"\xff" * 40, f"{TOKEN}\nshort\n".encode(), b"\n".join([TOKEN.encode()] * 9)],
)
def test_a_token_file_that_will_not_do_is_named_with_the_remedy_and_without_the_token(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(Terminal, match="openssl rand") as refused:
        TokenFile(path).load()
    assert str(path) in str(refused.value)
    assert TOKEN not in str(refused.value)


def test_files_that_hold_no_certificate_are_named(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path).issue("server")
    key.write_text("no key")
    with pytest.raises(Terminal, match=r"--tls-cert .*server\.pem, --tls-key .*server-key\.pem"):
        ServerFiles(certificate, key).context()
    with pytest.raises(Terminal, match="No such file"):
        ServerFiles(tmp_path / "absent", key).context()


def test_no_token_shows_in_a_traceback_with_local_variables(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    file = TokenFile(path)
    file.load()
    assert TOKEN not in repr(vars(file))
