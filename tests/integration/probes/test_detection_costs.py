"""The bench of detection costs, small: what settles stays at rest, and the figures are all there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from waiting import ran

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]


def test_thirty_brokers_at_rest_cost_nothing_but_renewals_of_leases(tmp_path: Path) -> None:
    sizes = ["--brokers", "30", "--partitions", "60", "--vantages", "3", "--probers", "2", "--seconds", "5"]
    done = ran([sys.executable, "-m", "detectioncosts", *sizes, "--reports", str(tmp_path)], 240)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "detection-costs.json").read_text())
    assert found["other_writes_per_second"] == 0
    # Three probers and one operator renew a Lease each two seconds; one that is kept waiting does not catch up.
    assert 0.4 <= found["lease_writes_per_second"] <= 3
    probers = [name for name in found["processes"] if name.startswith("prober ")]
    assert probers == ["prober vantage-a", "prober vantage-b"]
    for name in (*probers, "operator"):
        assert found["processes"][name]["cpu_cores"] > 0
        assert found["processes"][name]["resident_megabytes"] > 10
    for name in probers:
        assert found["questions_per_second"][name]["answered"] > 30
