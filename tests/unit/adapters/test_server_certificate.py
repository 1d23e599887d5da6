"""The certificate of a server: files that cannot be used are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellwether.adapters.server_certificate import ServerFiles
from bellwether.ports.errors import Terminal
from realparts.tls import Authority


def test_files_that_hold_no_certificate_are_named(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path).issue("server")
    key.write_text("no key")
    with pytest.raises(Terminal, match=r"--tls-cert .*server\.pem, --tls-key .*server-key\.pem"):
        ServerFiles(certificate, key).context()
    with pytest.raises(Terminal, match="No such file"):
        ServerFiles(tmp_path / "absent", key).context()
