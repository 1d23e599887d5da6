"""AWS STS on 127.0.0.1, as far as credentials come from it: AssumeRole and AssumeRoleWithWebIdentity.

In: nothing. Out: its URL for ``AWS_ENDPOINT_URL_STS``, what it was asked, and a way to refuse. Each answer has another
access key, whose secret is known here.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from realparts.started import Started

_ANSWER = """<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result><Credentials>
<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></{action}Result></{action}Response>"""
_REFUSAL = (
    "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{said}</Message></Error></ErrorResponse>"
)


class Sts(Started):
    """A context manager. ``refuse`` is the code of an error that answers everything while it is not empty."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.keys: dict[str, str] = {}
        self.refuse = ""
        self.url = ""
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        """Serve."""
        sts = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                form = dict(parse_qsl(body))
                sts.asked.append({**form, "signed": self.headers.get("Authorization", "")})
                said = sts._said(form["Action"], body).encode()
                self.send_response(403 if sts.refuse else 200)
                self.send_header("Content-Type", "text/xml")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="sts", daemon=True).start()

    def stop(self) -> None:
        """Refuse connections."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def _said(self, action: str, body: str) -> str:
        if self.refuse:
            return _REFUSAL.format(
                code=self.refuse, said=escape(body)
            )  # repeats what it was sent, as an unkind one would
        key, secret = f"ASIA{len(self.keys)}", f"sts-secret-{len(self.keys)}"
        self.keys[key] = secret
        return _ANSWER.format(action=action, key=key, secret=secret, token=f"sts-session-{len(self.keys)}")
