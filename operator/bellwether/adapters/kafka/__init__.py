"""Kafka behind the ports. Which library does what, and why, with figures: docs/decisions/0031.

Requests of the operator, the probers and the sampler go to a broker of our choice on our own connections, within one
deadline and without retries (``transport``, ``broker_connection``, ``broker_pool``); kafka-python encodes and decodes
their messages and computes SCRAM proofs, nothing else of it is used. The canary produces and
fetches through confluent-kafka.
"""

from bellwether.adapters.kafka.protocol_only import without_clients

without_clients()
