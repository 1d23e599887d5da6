"""Read until when the certificate is valid that a broker's TLS listener presents.

In: a listener's address, and the security settings of the policy's connection, whose client certificate is shown where
the listener asks for one. Out: a moment. One look is one TLS handshake: no request is sent, and nothing is verified, as
an expired certificate is what is looked for.
"""

from __future__ import annotations

import socket
import ssl
from datetime import datetime

from bellwether.adapters.pem import validities
from bellwether.kafka_connection import Security, split_address


class CertificateReader:
    """Reads with the client certificate of ``security``, which may change. It looks at no ``destinations``."""

    def __init__(self, security: Security | None = None) -> None:
        self.security = security

    def ends(self, address: str, timeout_seconds: float) -> datetime:
        """When the certificate at ``host:port`` ends (UTC).

        Raises OSError where no TLS is spoken, nothing answers, or the client's own certificate cannot be used;
        ValueError for an address or a certificate that cannot be read.
        """
        host, port = split_address(address)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self.security is not None and self.security.cert_file:
            context.load_cert_chain(self.security.cert_file, self.security.key_file or None, password=lambda: "")
        with (
            socket.create_connection((host, port), timeout_seconds) as plain,
            context.wrap_socket(plain, server_hostname=host) as encrypted,
        ):
            shown = encrypted.getpeercert(binary_form=True) or b""
        return validities(ssl.DER_cert_to_PEM_cert(shown).encode())[0].ends
