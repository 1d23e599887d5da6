"""Which slow tests one run takes: a shard of them, and those whose source files changed.

In: the options ``--shard=K/N`` and ``--changed-since=REVISION``. Out: the files to run; with both, the union. A shard
is every N-th file, so that tests of one file stay together. Called by ``tests/conftest.py``.
"""

from __future__ import annotations

import fnmatch
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence

import pytest

from sourcetree import ROOT

_JUDGING = (
    "core/detection/verdicts*",
    "core/detection/health_states*",
    "core/detection/findings*",
    "core/detection/reachability*",
    "probes/*",
)
_MOVING = (
    "core/demotion/decisions*",
    "core/planning/target_orders*",
    "core/execution/reorder_checks*",
    "core/execution/recovery*",
    "adapters/kafka/leader_mover*",
)
_KEEPING = ("core/model/undo_record*", "adapters/kubernetes/objects/undo_record_store*", "adapters/kubernetes/leases*")
_LOOPS = (
    "controllers/policy_*",
    "controllers/cluster_connection*",
    "controllers/session*",
    "controllers/wakeups*",
)
_STRIMZI = (
    "core/model/strimzi*",
    "adapters/kubernetes/kafka_cluster/strimzi*",
    "adapters/kubernetes/kafka_cluster/kafka_user_secrets*",
)
_SAMPLING = "/spark/bellwether_load/sampling/*"
_LOADS = ("/spark/bellwether_load/*",)
_RIGHTS = ("adapters/kubernetes/permissions*", "/helm/bellwether/templates/*")
_PROBING = (
    "cli/probe/*",
    "probes/runtime/*",
    "probes/outbox*",
    "adapters/kubernetes/objects/signal_cache*",
    "adapters/kubernetes/leases*",
)

SOURCES: Mapping[str, Sequence[str]] = {
    "architecture/test_release.py": ("/packaging/*", "/tests/support/realparts/registry*"),
    "contract/test_log_dirs.py": ("adapters/kafka/brokers/log_dirs*", "simulation/memory_kafka*"),
    "e2e/test_demo.py": ("/examples/demo/*",),
    "e2e/test_faults.py": ("/bench/faults/*",),
    "e2e/test_cures.py": ("/bench/cures/*",),
    "integration/alerts/test_a_broker_cut_off.py": ("/helm/bellwether/files/*", "telemetry/*", "probes/*"),
    "integration/alerts/test_real_faults.py": (
        "/helm/bellwether/files/alerts/*",
        "telemetry/metrics/operator_metrics*",
    ),
    "integration/alerts/test_scenes.py": (
        "/helm/bellwether/files/alerts/*",
        "/tests/support/testkit/alerts/*",
        "/tests/integration/alerts/scenes/*",
        "cli/diagnosis/*",
        "controllers/reporting/*",
        "core/reporting/*",
    ),
    "integration/apiserver/test_records.py": (
        "adapters/kubernetes/objects/undo_record_store*",
        "adapters/json_codec*",
        "adapters/undo_record_codec*",
    ),
    "integration/chart/test_installing.py": ("/helm/bellwether/*",),
    "integration/chart/test_sidecar_webhook.py": ("cli/installation/sidecar*", "/helm/bellwether/templates/*"),
    "integration/chart/test_spark_rights.py": ("/helm/bellwether/templates/*load*", "/spark/bellwether_load/jobs/*"),
    "integration/doctor/test_last_replica_lost.py": (
        "/examples/placement/last-replica-lost/*",
        "cli/offline/unclean_election*",
    ),
    "integration/doctor/test_matrix.py": ("core/doctor/*",),
    "integration/doctor/test_on_brokers.py": (
        "core/doctor/*",
        "cli/diagnosis/cluster_examination*",
        "cli/diagnosis/doctor*",
    ),
    "integration/doctor/test_partial_answers.py": (
        "adapters/kafka/connection/metadata_decoding*",
        "adapters/kafka/metadata_reader*",
        "core/model/cluster*",
    ),
    "integration/load/test_killed_brokers.py": (
        "/spark/bellwether_load/losses/*",
        "/spark/bellwether_load/cli/losses*",
    ),
    "integration/load/test_round_trip.py": _LOADS,
    "integration/load/test_sampling_a_policys_cluster.py": (_SAMPLING,),
    "integration/load/test_sampling_brokers.py": (_SAMPLING,),
    "integration/load/test_sampling_costs.py": (_SAMPLING, "/spark/bellwether_load/store/rollups/*"),
    "integration/moving/test_a_thousand_partitions.py": _MOVING,
    "integration/moving/test_by_hand.py": ("cli/leadership/demote*", *_MOVING),
    "integration/moving/test_invariants.py": (*_MOVING, *_KEEPING),
    "integration/moving/test_late_requests.py": (*_MOVING, *_KEEPING, "core/execution/arrivals*"),
    "integration/moving/test_others_at_work.py": ("core/reporting/policy_conditions*", "core/execution/reass*"),
    "integration/moving/test_races.py": _MOVING,
    "integration/operator/test_api_outages.py": (*_LOOPS, *_KEEPING, "adapters/kubernetes/api_client*"),
    "integration/operator/test_audit.py": (
        "core/reporting/audit*",
        "adapters/audit_codec*",
        "adapters/kubernetes/objects/audit_log*",
    ),
    "integration/operator/test_bad_input.py": (*_LOOPS, *_MOVING),
    "integration/operator/test_certificates.py": (
        "probes/certificates/*",
        "adapters/kafka/brokers/broker_certificate*",
    ),
    "integration/operator/test_deletion.py": (
        "controllers/policy_deletion*",
        "controllers/policy_finalizer*",
    ),
    "integration/operator/test_health.py": (
        "controllers/readiness*",
        "telemetry/health_server*",
        "cli/installation/operate*",
    ),
    "integration/operator/test_operator_kills.py": (*_KEEPING, *_MOVING, "execute.py"),
    "integration/operator/test_overrides.py": (*_MOVING, "cli/leadership/overrides*"),
    "integration/operator/test_planned_on_schedule.py": ("/spark/bellwether_load/controller/*", "core/waves/*"),
    "integration/operator/test_plugged_in_kinds.py": (
        "probes/plugins/measurer_probe*",
        "probes/plugins/plugin_discovery*",
        "/examples/signals/*",
    ),
    "integration/operator/test_quarantine.py": (
        "core/quarantine/*",
        "quarantine/*",
        "adapters/kubernetes/objects/quarantine_orders*",
    ),
    "integration/operator/test_reachability.py": _JUDGING,
    "integration/operator/test_rebalancing.py": ("/spark/bellwether_load/controller/*", "core/waves/*"),
    "integration/operator/test_recording.py": (
        "cli/recording/record*",
        "cli/recording/replay*",
        "recording/*",
        "simulation/re*",
    ),
    "integration/operator/test_rolling_restart.py": (
        "core/demotion/drain_check*",
        "core/model/maintenance*",
        "cli/leadership/drain*",
    ),
    "integration/operator/test_several_demoted.py": ("/examples/placement/several-demoted/*", *_MOVING),
    "integration/operator/test_identity.py": (
        "adapters/files/meta*",
        "*signal_writer*",
        "cli/probe/*",
        "probes/runtime/*",
    ),
    "integration/operator/test_slow_log_dir.py": ("*/log_dir*", "core/detection/storage*", "cli/probe/storage*"),
    "integration/operator/test_standby.py": (*_LOOPS, "adapters/kubernetes/leases*"),
    "integration/operator/test_uninstall.py": (
        "controllers/policy_deletion*",
        "controllers/policy_finalizer*",
        "cli/installation/uninstall*",
    ),
    "integration/operator/test_versions.py": (*_KEEPING, "controllers/readiness*"),
    "integration/operator/test_waves.py": ("core/demotion/restoration*", "core/model/restoration_waves*"),
    "integration/parts/test_broker_faults.py": ("/tests/support/realparts/*",),
    "integration/parts/test_shims.py": ("/tests/support/realparts/*",),
    "integration/placement/test_capacity.py": ("/examples/placement/capacity/*", "core/model/loads*"),
    "integration/placement/test_coexistence.py": (*_STRIMZI, "core/execution/reass*", "core/model/undo_record*"),
    "integration/placement/test_moving_by_racks.py": ("core/planning/*", "core/model/rack*"),
    "integration/placement/test_primary_rack.py": ("/examples/placement/primary-rack/*", "core/planning/*"),
    "integration/placement/test_scope.py": ("core/settings/placement*",),
    "integration/probes/test_canary_process.py": (
        "probes/canary/*",
        "adapters/kafka/canary_client*",
        "cli/probe/canary*",
        *_PROBING,
    ),
    "integration/probes/test_detection_costs.py": ("/bench/detectioncosts/*",),
    "integration/probes/test_log_directories_process.py": ("probes/storage/*",),
    "integration/probes/test_quarantine_agent_process.py": (
        "quarantine/*",
        "cli/probe/quarantine_agent*",
        "adapters/kubernetes/objects/quarantine_orders*",
    ),
    "integration/probes/test_reachability_process.py": (
        "probes/reachability/reachability_probe*",
        "probes/reachability/broker_watch*",
        *_PROBING,
    ),
    "integration/probes/test_replication_process.py": (
        "probes/replication/replication_probe*",
        "probes/replication/lag_state*",
        *_PROBING,
    ),
    "integration/probes/test_self_process.py": ("probes/connections/*", *_PROBING),
    "integration/probes/test_several_policies.py": ("probes/runtime/watched_policies*", *_PROBING),
    "integration/probes/test_storage_process.py": (
        "probes/storage/write_probe*",
        "probes/storage/disk_write*",
        "probes/storage/read_probe*",
        "probes/storage/disk_read*",
        *_PROBING,
    ),
    "integration/prometheus/test_prober.py": ("probes/prometheus/*", *_PROBING),
    "integration/rights/test_nothing_superfluous.py": _RIGHTS,
    "integration/rights/test_probers_need_their_rights.py": _RIGHTS,
    "integration/rights/test_rights_suffice.py": (*_RIGHTS, "controllers/readiness*"),
    "integration/rights/test_strimzi_rights.py": (*_RIGHTS, *_STRIMZI),
    "integration/rights/test_two_installations.py": (
        *_RIGHTS,
        "adapters/json_codec*",
        "adapters/kafka/connection/*",
        "adapters/kafka/installation_marks*",
        "adapters/kubernetes/leases*",
        "adapters/pem*",
    ),
    "integration/rights/test_two_tenants.py": (
        *_RIGHTS,
        "adapters/json_codec*",
        "adapters/kafka/connection/*",
        "adapters/kubernetes/leases*",
        "adapters/pem*",
    ),
    "integration/runbooks/test_runbooks.py": (
        "/docs/alerts/*",
        "/docs/reasons.md",
        "/docs/runbook.md",
        "/docs/unreachable-brokers.md",
        "/helm/bellwether/templates/*",
        "/tests/support/testkit/runbooks/*",
        "cli/diagnosis/*",
    ),
    "integration/security/test_acls.py": ("adapters/kafka/connection/tls_sasl*", "/docs/security/kafka-acls.md"),
    "integration/security/test_bad_input.py": (
        "adapters/kubernetes/kafka_cluster/secret_reader*",
        "adapters/kafka/connection/tls_sasl*",
        *_LOOPS,
    ),
    "integration/security/test_canaries.py": ("telemetry/logs*", "adapters/kubernetes/kafka_cluster/secret_reader*"),
    "integration/security/test_rotation.py": (
        "controllers/cluster_connection*",
        "adapters/kubernetes/kafka_cluster/secret_reader*",
    ),
    "integration/security/test_workload_tokens.py": ("adapters/kafka/tokens/*",),
    "integration/strimzi/test_a_name_is_enough.py": _STRIMZI,
    "integration/strimzi/test_bad_input.py": _STRIMZI,
    "integration/strimzi/test_older_strimzi.py": _STRIMZI,
    "integration/strimzi/test_what_waits.py": (*_STRIMZI, "core/reporting/policy_conditions*", "core/execution/reass*"),
    "spark/test_processes.py": ("/spark/bellwether_load/jobs/*",),
    "unit/bellwether_load/balancing/test_exact.py": ("/spark/bellwether_load/balancing/*",),
    "unit/bellwether_load/balancing/test_balance.py": ("/spark/bellwether_load/balancing/*",),
    "unit/bellwether_load/cli/test_verify_plan.py": ("/spark/bellwether_load/verify/*",),
    "unit/monthsim/test_reconciles.py": ("/bench/monthsim/*",),
    "unit/monthsim/test_reports.py": ("/bench/monthsim/*",),
    "unit/probes/reachability/test_reachability_probe.py": ("probes/reachability/*",),
}
"""What each file of slow tests is there for, as patterns of paths: of the product's, or with a slash of the tree's."""


def changed_files(since: str) -> frozenset[str]:
    """Paths that differ between a revision and HEAD. Raises pytest.UsageError for an unknown revision."""
    command = ["git", "-C", str(ROOT), "diff", "--name-only", since, "HEAD", "--"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise pytest.UsageError(f"--changed-since={since}: {done.stderr.strip()}")
    return frozenset(done.stdout.split())


def tree_pattern(pattern: str) -> str:
    """The pattern of ``SOURCES`` as one of the whole tree."""
    return pattern[1:] if pattern.startswith("/") else f"operator/bellwether/{pattern}"


def touched(file: str, changed: Collection[str]) -> bool:
    """Whether a test file, given below ``tests/``, or one of its sources is among the changed files."""
    patterns = [f"tests/{file}", *map(tree_pattern, SOURCES.get(file, ()))]
    return any(fnmatch.fnmatchcase(path, pattern) for path in changed for pattern in patterns)


def shard_files(files: Iterable[str], shard: str) -> frozenset[str]:
    """The files of the shard ``K/N``. Raises pytest.UsageError."""
    number, _, count = shard.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"--shard={shard}: expected K/N with 1 <= K <= N, such as 2/3")
    return frozenset(sorted(set(files))[int(number) - 1 :: int(count)])


def chosen_files(files: Collection[str], shard: str | None, since: str | None) -> frozenset[str]:
    """The files that a run with these options takes; without any option, all."""
    if not shard and not since:
        return frozenset(files)
    chosen = shard_files(files, shard) if shard else frozenset()
    changed = changed_files(since) if since else frozenset()
    return chosen | {file for file in files if touched(file, changed)}
