"""A signal: which version of TLS a broker's listener speaks with a client that offers all of them.

Settings, as strings in the policy: ``listener`` (EXTERNAL) and ``minimum`` (1.3), below which a broker fails.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping

from bellwether.kafka_connection import split_address
from bellwether.probes.plugins.plugin_api import Measurement


class TlsVersion:
    """One look is one TLS handshake."""

    type = "TlsVersion"

    def measure(
        self, broker: int, addresses: Mapping[str, str], settings: Mapping[str, str], timeout_seconds: float
    ) -> Measurement:
        listener = settings.get("listener", "EXTERNAL")
        try:
            minimum = float(settings.get("minimum", "1.3"))
        except ValueError:
            return Measurement(None, f"minimum is not a number: {settings['minimum']}")
        if listener not in addresses:
            return Measurement(None, f"broker {broker} has not said where its listener {listener} is")
        try:
            version = self._version(addresses[listener], timeout_seconds)
        except (OSError, ValueError) as error:
            # Whether the listener can be reached is another signal's question: to this one it is no evidence.
            return Measurement(None, f"{addresses[listener]} speaks no TLS: {error}")
        return Measurement(version >= minimum, f"{addresses[listener]} speaks TLS {version}", version)

    def _version(self, address: str, timeout_seconds: float) -> float:
        # No secret is sent: nothing is verified.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        host, port = split_address(address)
        with (
            socket.create_connection((host, port), timeout_seconds) as plain,
            context.wrap_socket(plain, server_hostname=host) as encrypted,
        ):
            return float((encrypted.version() or "").removeprefix("TLSv"))
