"""``bellwether probe storage`` with two log directories: one process, and a source and a Lease for each directory."""

from __future__ import annotations

import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import LEASES
from bellwether.probes.storage.disk_write import FILE_NAME
from realparts.ports import HeldPorts
from testkit.kafka.formatted_directories import formatted
from waiting import limit

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]

SOURCES = {"broker-2-first": "data-1", "broker-2-second": "data-2"}


def reported(bench: Any) -> dict[str, tuple[str, str]]:
    """Directory and Lease of each source that has reported its writes."""
    signals = (bench.health(2).get("status") or {}).get("signals", [])
    return {s["source"]: (s["directory"], s["leaseName"]) for s in signals if s["type"] == "StorageLatency"}


def test_one_process_reports_of_each_directory_under_a_source_and_a_lease_of_its_own(
    dry_bench: Any, tmp_path: Path
) -> None:
    paths = {source: tmp_path / name for source, name in SOURCES.items()}
    for path in paths.values():
        formatted(path, 2)
    first, second = paths.values()
    with HeldPorts() as ports:
        port = ports.take()
        process = dry_bench.start(
            "storage",
            *("--metrics-port", str(port)),
            *("--directory", f"first={first}", "--directory", f"second={second}"),
        )
        dry_bench.until(lambda: reported(dry_bench).keys() == SOURCES.keys(), 90)
        leases = {lease["metadata"]["name"] for lease in dry_bench.api.list(LEASES, dry_bench.namespace)}
        assert leases == {f"bellwether-prober-main.storagelatency.{source}" for source in SOURCES}
        assert reported(dry_bench) == {
            source: (str(path), f"bellwether-prober-main.storagelatency.{source}") for source, path in paths.items()
        }
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=limit(20)) as answer:
            page = answer.read().decode()
        writes = [line for line in page.splitlines() if line.startswith("bellwether_probe_disk_writes_total")]
        assert {source for source in SOURCES if any(f'source="{source}"' in line for line in writes)} == SOURCES.keys()
        (served,) = [line for line in page.splitlines() if line.startswith("bellwether_policies_served{")]
        assert served.endswith(" 1.0"), "two directories, one policy"
        process.send_signal(signal.SIGTERM)
        assert process.wait(limit(60)) == 0, dry_bench.logs()
    assert not any((path / FILE_NAME).exists() for path in paths.values())
