"""Security settings of connections: none; every one, by password and by token. All of them go anywhere."""

from __future__ import annotations

from pathlib import Path

from bellwether.adapters.prometheus.query_client import Access
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Mechanism, OAuth, Protocol, Security

PLAINTEXT = Security(destinations=ANYWHERE)
WITHOUT_CREDENTIALS = Access(destinations=ANYWHERE)
FULL = Security(
    destinations=ANYWHERE,
    protocol=Protocol.SASL_SSL,
    mechanism=Mechanism.SCRAM_SHA_512,
    username="operator",
    password="s3cr3t",
    ca_file="/etc/ca.pem",
    cert_file="/etc/client.pem",
    key_file="/etc/client-key.pem",
    verify_hostname=False,
)
OAUTH = OAuth(
    destinations=ANYWHERE,
    token_endpoint="https://login.example.com/token",
    client_id="bellwether",
    client_secret="s3cr3t",
)
BY_TOKEN = Security(destinations=ANYWHERE, protocol=Protocol.SASL_SSL, mechanism=Mechanism.OAUTHBEARER, oauth=OAUTH)


def client_properties(file: Path, user: str, password: str, ca: Path | None = None) -> Path:
    """Write a properties file of Kafka's tools, with SCRAM over TLS."""
    login = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{user}" password="{password}";'
    keys = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": login}
    if ca is not None:
        keys |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca)}
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    return file
