"""Every security setting of a connection, by password and by token."""

from __future__ import annotations

from bellwether.kafka_connection import Mechanism, OAuth, Protocol, Security

FULL = Security(
    protocol=Protocol.SASL_SSL,
    mechanism=Mechanism.SCRAM_SHA_512,
    username="operator",
    password="s3cr3t",
    ca_file="/etc/ca.pem",
    cert_file="/etc/client.pem",
    key_file="/etc/client-key.pem",
    verify_hostname=False,
)
OAUTH = OAuth(token_endpoint="https://login.example.com/token", client_id="bellwether", client_secret="s3cr3t")
BY_TOKEN = Security(protocol=Protocol.SASL_SSL, mechanism=Mechanism.OAUTHBEARER, oauth=OAUTH)
