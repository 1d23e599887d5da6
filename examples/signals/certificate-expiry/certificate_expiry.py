"""A kind of signal: for how many days the certificate of a broker's TLS listener is still valid.

Settings, as strings in the policy: ``listener`` (EXTERNAL) and ``minimumDays`` (14), below which a broker fails.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping

from cryptography import x509

from bellwether.kafka_connection import split_address
from bellwether.probes.plugins.plugin_api import Measurement

DAY_SECONDS = 86400.0


class CertificateExpiry:
    """One look is one TLS handshake."""

    type = "CertificateExpiry"

    def measure(
        self, broker: int, addresses: Mapping[str, str], settings: Mapping[str, str], timeout_seconds: float
    ) -> Measurement:
        listener = settings.get("listener", "EXTERNAL")
        try:
            minimum = float(settings.get("minimumDays", "14"))
        except ValueError:
            return Measurement(None, f"minimumDays is not a number: {settings['minimumDays']}")
        if listener not in addresses:
            return Measurement(None, f"broker {broker} has not said where its listener {listener} is")
        try:
            certificate = self._certificate(addresses[listener], timeout_seconds)
        except (OSError, ValueError) as error:
            # Whether the listener can be reached is another signal's question: to this one it is no evidence.
            return Measurement(None, f"{addresses[listener]} shows no certificate: {error}")
        days = (certificate.not_valid_after_utc.timestamp() - time.time()) / DAY_SECONDS
        return Measurement(
            days >= minimum, f"the certificate of {addresses[listener]} is valid for {days:.1f} more days", days
        )

    def _certificate(self, address: str, timeout_seconds: float) -> x509.Certificate:
        # An expired certificate is what this looks for, and no secret is sent: nothing is verified.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        host, port = split_address(address)
        with (
            socket.create_connection((host, port), timeout_seconds) as plain,
            context.wrap_socket(plain, server_hostname=host) as encrypted,
        ):
            return x509.load_der_x509_certificate(encrypted.getpeercert(binary_form=True) or b"")
