"""A vantage without probes: it renews its Lease and writes its entries as a prober does, and says what a test asks.

Used by tests that need a verdict and not the measuring that leads to one.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.adapters.kubernetes.objects.signal_writer import ProberLease, SignalWriter
from bellwether.core.signals import Reading, Signal, SignalType
from waiting import limit

KIND = SignalType.EXTERNAL_REACHABILITY


class FakeProber:
    """One vantage of one policy. Fresh from its making until ``stop``."""

    def __init__(self, api: KubernetesClient, namespace: str, policy: str, vantage: str) -> None:
        self.vantage = vantage
        self._lease = ProberLease(api, namespace, policy, KIND, vantage, SystemClock(), renew_seconds=0.5)
        self._writer = SignalWriter(api, namespace, policy, KIND, vantage, self._lease)
        self._stop = threading.Event()
        if not self._lease.acquire():
            raise RuntimeError(f"the Lease of vantage {vantage} is held by {self._lease.owner}")
        self._pulse = threading.Thread(target=self._beat, daemon=True)
        self._pulse.start()

    def says(self, broker: int, reading: Reading, control: Reading = Reading.PASSING) -> None:
        """Its word on a broker, from now on. Raises Transient while the broker has no BrokerHealth."""
        message = "connection refused" if reading is Reading.FAILING else ""
        signal = Signal(broker, KIND, self.vantage, reading, datetime.now(UTC), control=control, message=message)
        self._writer.write(signal)

    def calls_well(self, *brokers: int) -> None:
        """Its word on some brokers: passing, inside and outside."""
        for broker in brokers:
            self.says(broker, Reading.PASSING)

    def stop(self) -> None:
        """Go silent: the Lease is given up."""
        self._stop.set()
        self._pulse.join(limit(5))
        self._lease.release()

    def _beat(self) -> None:
        while not self._stop.wait(0.5):
            self._lease.beat()
