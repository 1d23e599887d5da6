"""``python -m detectioncosts.standins``: vantages that ask no one, and report as settled probers do.

Each holds a Lease of its own, writes one entry on every broker, and from then on renews its Lease. To the operator and
to the API server they are probers; a machine with few cores need not run them all.
"""

from __future__ import annotations

import argparse
import itertools
import threading
import time

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import KubernetesClient, connect
from bellwether.adapters.kubernetes.objects.signal_writer import ProberLease, SignalWriter
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.ports.errors import Transient

KIND = SignalType.EXTERNAL_REACHABILITY


def stand_in(api: KubernetesClient, namespace: str, policy: str, vantage: str, brokers: int) -> None:
    """Be a vantage of one policy for ever."""
    clock = SystemClock()
    lease = ProberLease(api, namespace, policy, KIND, vantage, clock)
    while not lease.acquire():
        time.sleep(1)
    writer = SignalWriter(api, namespace, policy, KIND, vantage, lease)
    threading.Thread(target=_beat, args=(lease,), daemon=True).start()
    for broker in range(1, brokers + 1):
        word = Signal(broker, KIND, vantage, Reading.PASSING, clock.now(), control=Reading.PASSING, message="answers")
        while not _written(writer, word):
            time.sleep(1)
    print(f"{vantage} has written {brokers} entries of {policy}", flush=True)


def _beat(lease: ProberLease) -> None:
    while True:
        time.sleep(0.5)
        lease.beat()


def _written(writer: SignalWriter, word: Signal) -> bool:
    try:
        writer.write(word)
    except Transient:
        return False  # the operator makes the object in a moment
    return True


def main() -> None:
    """Read the command line and report until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--brokers", type=int, required=True)
    parser.add_argument("--vantage", action="append", default=[])
    parser.add_argument("policies", nargs="+")
    asked = parser.parse_args()
    api = connect()
    for policy, vantage in itertools.product(asked.policies, asked.vantage):
        threading.Thread(
            target=stand_in, args=(api, asked.namespace, policy, vantage, asked.brokers), daemon=True
        ).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
