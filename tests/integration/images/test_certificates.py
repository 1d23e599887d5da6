"""An API behind an authority without formal extensions, as many managed clusters have, on the image's Python."""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bellwether.api.v1alpha1.base_model import GROUP, VERSION
from images.running import Room, Unpacked
from realparts.ports import LOOPBACK
from realparts.tls import Authority
from waiting import until

pytestmark = pytest.mark.image

VERSIONS = [{"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}]
EMPTY = {
    "kind": "APIVersions",
    "versions": ["v1"],
    "groups": [{"name": GROUP, "versions": VERSIONS, "preferredVersion": VERSIONS[0]}],
    "resources": [],
    "items": [],
    "status": {},
}
"""Valid as an answer to every question that the operator asks."""
SERVED = {
    **EMPTY,
    "resources": [
        {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get", "list", "watch", "patch"]}
        for name, kind in (
            ("leadershippolicies", "LeadershipPolicy"),
            ("brokerhealths", "BrokerHealth"),
            ("signalsources", "SignalSource"),
            ("leaderrebalances", "LeaderRebalance"),
        )
    ],
}
"""Discovery of our group: kopf is started once all kinds are served."""


@pytest.fixture
def asked() -> list[str]:
    """The paths that the server was asked for."""
    return []


@pytest.fixture
def room(asked: list[str], tmp_path: Path) -> Iterator[Room]:
    """A way into a server that has the kinds and no object, by an authority that does not say what its key is for."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.headers.get('User-Agent', '')} {self.path}")
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = json.dumps(SERVED if self.path == f"/apis/{GROUP}/{VERSION}" else EMPTY).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    authority = Authority(tmp_path / "authority", formal=False)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    cluster = {
        "server": f"https://127.0.0.1:{server.server_address[1]}",
        "certificate-authority-data": base64.b64encode(authority.path.read_bytes()).decode(),
    }
    folder = tmp_path / "access"
    folder.mkdir()
    (folder / "kubeconfig").write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "a", "cluster": cluster}],
                "users": [{"name": "a", "user": {"token": "word"}}],
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "current-context": "a",
            }
        )
    )
    yield Room(environment={"KUBECONFIG": "/run/access/kubeconfig", **LOOPBACK}, shown={"/run/access": folder})
    server.shutdown()
    server.server_close()


def test_both_clients_of_the_operator_trust_it(
    images: Callable[[str], Unpacked], start: Any, room: Room, asked: list[str]
) -> None:
    ports = ["--metrics-port", "0", "--health-port", "0"]
    operator = start(images("operator"), "operator", "-n", "x", "--lease-namespace", "x", *ports, room=room)

    def both() -> bool:
        return any("kopf" in line for line in asked) and any("kopf" not in line for line in asked)

    until(both, 60, alive=lambda: operator.running, seen=operator.said)
    assert "CERTIFICATE_VERIFY_FAILED" not in operator.said()
    operator.terminate()
    assert operator.wait(30) == 0, operator.said()
