"""``python -m lagcosts``: the rounds of a real prober against brokers that answer at once.

In: how large a cluster. Out: a table of what a round takes: requests, bytes, seconds, processor seconds, memory. The
first round encodes every question and reads the map, the second is a round at rest.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.brokers.log_ends import MOST_PARTITIONS, LogEnds
from bellwether.adapters.kafka.connection import transport
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.settings.detection import ReplicationLag
from bellwether.kafka_connection import Connection
from bellwether.probes.replication.lag_round import LagRounds

PATIENT = Limits(opening_seconds=30, finding_seconds=30, request_seconds=120, read_seconds=240)


def main() -> None:
    """Measure one size, with every follower at its leader's end and with some that are stuck."""
    parser = argparse.ArgumentParser(prog="lagcosts", description=__doc__)
    parser.add_argument("--partitions", type=int, default=200_000)
    parser.add_argument("--brokers", type=int, default=30)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--still", type=float, default=0.0, help="share of followers that are stuck")
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args()
    command = [sys.executable, "-m", "lagcosts.brokers", str(asked.brokers), str(asked.partitions), str(asked.replicas)]
    with subprocess.Popen([*command, str(asked.still)], stdout=subprocess.PIPE, text=True) as brokers:
        try:
            assert brokers.stdout is not None
            addresses = tuple(f"127.0.0.1:{port}" for port in brokers.stdout.readline().split())
            measure(Connection(addresses), asked.rounds)
        finally:
            brokers.kill()
    per_broker = -(-asked.partitions * asked.replicas // asked.brokers)
    requests = asked.brokers * -(-per_broker // MOST_PARTITIONS)
    print(f"{requests} ListOffsets requests a round, of {asked.brokers} brokers")


def measure(connection: Connection, rounds: int) -> None:
    """A line for each round."""
    received = 0
    plain = transport.Transport.receive

    def counted(self: transport.Transport, *arguments: object) -> bytearray:
        nonlocal received
        frame = plain(self, *arguments)  # type: ignore[arg-type]
        received += len(frame) + 4
        return frame

    transport.Transport.receive = counted  # type: ignore[assignment, method-assign]

    class Patient(ReplicationLag):
        timeout_seconds = 60

    settings = Patient()
    soundings = LagRounds(KafkaReader(BrokerPool(connection, PATIENT)), LogEnds(connection), SystemClock())
    soundings.round(settings)  # the brokers make their answers; not measured
    print(f"{'round':>5} {'seconds':>8} {'CPU s':>6} {'MB in':>6} {'MB RSS':>7} {'lagging':>8}")
    for number in range(1, rounds + 1):
        before, spent, bytes_before = time.monotonic(), time.process_time(), received
        found = soundings.round(settings)
        print(
            f"{number:>5} {time.monotonic() - before:>8.2f} {time.process_time() - spent:>6.2f}"
            f" {(received - bytes_before) / 1e6:>6.1f}"
            f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:>7.0f}"
            f" {sum(look.lagging for look in found.values()):>8}",
            flush=True,
        )
    soundings.close()


if __name__ == "__main__":
    main()
