"""What metrics and the audit log say of a whole quarantine, with agents at their posts or without."""

from __future__ import annotations

from dataclasses import replace

from bellwether.core.model.quarantine_order import QuarantineChange
from bellwether.core.reporting.audit import AuditEntry
from bellwether.ports.kubernetes import NothingShared
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.telemetry.metrics.operator_metrics import OperatorMetrics
from testkit.messages import assert_wording
from testkit.simulation.quarantine_simulation import LIMIT_SECONDS, QuarantineSite


class Trail(NothingShared):
    """Keeps what audit entries say of quarantines."""

    def __init__(self) -> None:
        self.quarantines: list[QuarantineChange] = []

    def conclude(self, entry: AuditEntry) -> None:
        self.quarantines += entry.quarantines


class Watched:
    """A site of four brokers, any of which may be spared, whose reconciles are exported as metrics, each once."""

    def __init__(self) -> None:
        cluster = MemoryCluster(4)
        cluster.create_topic("orders", 4, 4, min_isr=2)
        self.risk_summary = QuarantineSite(cluster)
        self.metrics = OperatorMetrics()
        self.metrics.leading("default", "main", True)
        self.trail = Trail()
        assert self.risk_summary.operator is not None
        self.risk_summary.operator.world = replace(self.risk_summary.operator.world, trail=self.trail)
        self._told = 0
        self.seconds(5)

    def seconds(self, count: int) -> None:
        """Time passes."""
        for _ in range(count):
            self.risk_summary.seconds(1)
            assert self.risk_summary.operator is not None
            for report in self.risk_summary.operator.reports[self._told :]:
                self.metrics.record_reconcile("default", "main", 0.1, report, 0)
            self._told = len(self.risk_summary.operator.reports)

    def until_held(self) -> None:
        """Broker 1 slows down, and is demoted and held for that."""
        self.risk_summary.slow.add(1)
        for _ in range(60):
            self.seconds(1)
            if self.of_broker("held") == 1:
                return
        raise AssertionError("no broker was held")

    def of_broker(self, name: str, **labels: str) -> float | None:
        """A series of broker 1's quarantine."""
        return self.value(f"broker_quarantine_{name}", broker="1", **labels)

    def value(self, name: str, **labels: str) -> float | None:
        """A series of the policy."""
        all_labels = {"namespace": "default", "policy": "main", **labels}
        return self.metrics.registry.get_sample_value(f"bellwether_{name}", all_labels)


def test_a_quarantine_is_exported_from_its_order_to_recovery():
    watched = Watched()
    watched.until_held()
    assert watched.risk_summary.held == {1}
    assert (watched.of_broker("ordered"), watched.value("quarantines_started_total")) == (1, 1)
    watched.risk_summary.mend(1)
    watched.seconds(5)
    assert watched.risk_summary.held == {1}, "its disk must be fast for a while"
    watched.seconds(watched.risk_summary.policy.promotion.stabilization_seconds)
    assert watched.risk_summary.held == set()
    assert (watched.of_broker("ordered"), watched.of_broker("held")) == (0, 0)
    assert watched.of_broker("ended", reason="QuarantineEnded") == 1
    assert watched.value("quarantines_ended_total", reason="QuarantineEnded") == 1
    watched.seconds(LIMIT_SECONDS)
    assert (watched.of_broker("ordered"), watched.of_broker("ended", reason="QuarantineEnded")) == (None, None)
    assert watched.value("quarantines_started_total") == 1


def test_a_lasting_fault_is_exported_before_and_after_the_limit():
    watched = Watched()
    watched.until_held()
    since, until = watched.of_broker("since_timestamp_seconds"), watched.of_broker("until_timestamp_seconds")
    assert since is not None
    assert until == since + LIMIT_SECONDS
    watched.seconds(LIMIT_SECONDS - 10)
    assert (watched.of_broker("held"), watched.of_broker("until_timestamp_seconds")) == (1, until)
    watched.seconds(15)
    assert (watched.of_broker("held"), watched.of_broker("until_timestamp_seconds")) == (0, None)
    assert watched.of_broker("ended", reason="QuarantineLimit") == 1
    assert watched.value("broker_demoted", broker="1") == 1


def test_a_dead_agent_is_exported_as_an_order_without_hold():
    watched = Watched()
    watched.until_held()
    watched.risk_summary.kill_agent(1)
    watched.seconds(30)
    assert (watched.of_broker("ordered"), watched.of_broker("held")) == (0, 0)
    assert watched.of_broker("ended", reason="AgentUnavailable") == 1
    assert watched.value("quarantines_ended_total", reason="AgentUnavailable") == 1
    assert watched.value("broker_demoted", broker="1") == 1


def test_the_audit_log_has_the_order_and_its_end():
    watched = Watched()
    watched.until_held()
    watched.seconds(5)
    watched.risk_summary.mend(1)
    watched.seconds(LIMIT_SECONDS)
    started, ended = watched.trail.quarantines
    assert (started.broker, started.ended, started.reason) == (1, False, "QuarantinePending")
    assert (ended.broker, ended.ended, ended.reason) == (1, True, "QuarantineEnded")
    assert ended.held is not None
    assert 5 <= ended.held < LIMIT_SECONDS


def test_the_audit_log_has_the_end_that_a_suspension_brings():
    watched = Watched()
    watched.until_held()
    assert watched.risk_summary.operator is not None
    watched.risk_summary.operator.policy = replace(watched.risk_summary.policy, suspend=True)
    watched.seconds(10)
    assert [change.ended for change in watched.trail.quarantines] == [False, True]
    assert_wording(watched.trail.quarantines[1].message)
