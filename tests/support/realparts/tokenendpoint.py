"""A token endpoint over HTTPS on 127.0.0.1: client credentials (RFC 6749, 4.4) for signed tokens (RFC 7519, RS256).

In: a certificate, and which clients there are. Out: its URL, the key set that Kafka checks tokens with, and ways to
break it. Tests start it; brokers trust it by ``jwks``.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from realparts.ports import HeldPorts
from realparts.started import Started

AUDIENCE = "kafka"
ISSUER = "https://token-endpoint"


class TokenEndpoint(Started):
    """A context manager. ``answer`` replaces what it says: status and body; ``delay_seconds`` holds it back."""

    def __init__(self, folder: Path, certificate: tuple[Path, Path], clients: dict[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.clients = dict(clients)
        self.life_seconds = 300
        self.delay_seconds = 0.0
        self.answer: tuple[int, bytes] | None = None
        self.extra: dict[str, Any] = {}
        self.asked: list[dict[str, str]] = []
        self.given: list[str] = []
        self._certificate = certificate
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._key_id = uuid.uuid4().hex[:8]
        self.jwks = folder / "jwks.json"
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self._key_id}
        key |= {"n": _number(numbers.n), "e": _number(numbers.e)}
        self.jwks.write_text(json.dumps({"keys": [key]}))
        self._server: ThreadingHTTPServer | None = None
        self._ports = HeldPorts()  # no other process may have it while the endpoint is down
        self._port = self._ports.take()

    @property
    def url(self) -> str:
        """Where tokens are to be had."""
        return f"https://127.0.0.1:{self._port}/token"

    def start(self) -> None:
        """Serve, at the same port as before."""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                time.sleep(endpoint.delay_seconds)
                status, said = endpoint.reply(self.headers.get("Authorization", ""), body.decode())
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(said)))
                    self.end_headers()
                    self.wfile.write(said)
                except OSError:
                    return  # the client has gone

            def log_message(self, *_: Any) -> None:
                return

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def finish_request(self, request: Any, address: Any) -> None:
                # The handshake is each connection's own: one that does not go on holds no other.
                request.settimeout(30)
                try:
                    super().finish_request(context.wrap_socket(request, server_side=True), address)
                except OSError:
                    return

            def handle_error(self, *_: Any) -> None:
                return

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._certificate)
        self._server = Server(("127.0.0.1", self._port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="token endpoint", daemon=True).start()

    def stop(self) -> None:
        """Refuse connections."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def certify(self, certificate: tuple[Path, Path]) -> None:
        """Serve with another certificate from now on."""
        self.stop()
        self._certificate = certificate
        self.start()

    def reply(self, authorization: str, body: str) -> tuple[int, bytes]:
        """Status and body for one request."""
        form = dict(urllib.parse.parse_qsl(body))
        self.asked.append(form)
        if self.answer is not None:
            return self.answer
        client = self._client(authorization)
        if client is None:
            return 401, b'{"error": "invalid_client", "error_description": "' + authorization.encode() + b'"}'
        if form.get("grant_type") != "client_credentials":
            return 400, b'{"error": "unsupported_grant_type"}'
        said = {"access_token": self.token(client), "token_type": "Bearer", "expires_in": self.life_seconds}
        return 200, json.dumps({**said, **self.extra}).encode()

    def token(self, client: str, **claims: Any) -> str:
        """A signed token for a client."""
        now = int(time.time())
        header = {"alg": "RS256", "typ": "JWT", "kid": self._key_id}
        body = {"iss": ISSUER, "aud": AUDIENCE, "sub": client, "iat": now, "exp": now + self.life_seconds, **claims}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in (header, body))
        made = f"{signed}.{_encoded(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
        self.given.append(made)
        return made

    def _client(self, authorization: str) -> str | None:
        kind, _, encoded = authorization.partition(" ")
        try:
            pair = base64.b64decode(encoded).decode().partition(":")
        except ValueError:
            return None
        name, secret = urllib.parse.unquote(pair[0]), urllib.parse.unquote(pair[2])
        return name if kind == "Basic" and secret and self.clients.get(name) == secret else None


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))
