"""Security settings of connections: none; every one, by password and by token. All of them go anywhere."""

from __future__ import annotations

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
