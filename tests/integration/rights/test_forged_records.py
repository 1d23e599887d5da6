"""Undo records and audit logs are written by the operator only, whatever RBAC says about ConfigMaps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, KubernetesClient, Object, connect
from bellwether.adapters.kubernetes.objects.audit_log import LABEL, SEGMENT, ConfigMapAuditLog
from bellwether.adapters.kubernetes.objects.undo_record_store import PART_LABEL, ConfigMapRecords
from bellwether.core.reporting.audit import AuditEntry
from bellwether.ports.errors import Terminal
from testkit.kubernetes.chart_accounts import OPERATOR
from testkit.kubernetes.forged_writes_fixture import STRANGER, Stage
from testkit.values.builders import START
from waiting import until

if TYPE_CHECKING:
    from realparts.auditing import AuditedApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.chart]

RECORD, AUDIT = "bellwether-undo-main", "bellwether-audit-main"
EDITOR = "eve"


@pytest.fixture(scope="module")
def stage(audited: AuditedApiServer) -> Iterator[Stage]:
    made = Stage(audited)
    until(lambda: refused(lambda: create(made, made.by(STRANGER), "bellwether-undo-early")))
    ConfigMapRecords(made.by(OPERATOR), made.namespace, "main").take_over("the-cluster")
    ConfigMapAuditLog(made.by(OPERATOR), made.namespace, "main", SystemClock()).begin(
        AuditEntry(START, "the-cluster", 1)
    )
    yield made
    made.accounts.remove()


def refused(write: Callable[[], object]) -> bool:
    try:
        write()
    except Terminal:
        return True
    return False


def create(stage: Stage, api: KubernetesClient, name: str, **labels: str) -> Object:
    found = stage.admin.find(CONFIG_MAPS, stage.namespace, name)
    if found is not None:
        stage.admin.delete(CONFIG_MAPS, stage.namespace, name)
    body = {"metadata": {"name": name, "labels": {key.replace("__", "/"): value for key, value in labels.items()}}}
    return api.create(CONFIG_MAPS, stage.namespace, {"apiVersion": "v1", "kind": "ConfigMap", **body})


def merge(stage: Stage, api: KubernetesClient, name: str, patch: Object) -> Object:
    return api.merge(CONFIG_MAPS, stage.namespace, name, patch)


Write = Callable[[Stage, KubernetesClient], Any]
FORGED: dict[str, Write] = {
    "another epoch": lambda s, a: merge(s, a, RECORD, {"data": {"epoch": "99"}}),
    "entries of a shard": lambda s, a: merge(s, a, f"{RECORD}.3", {"binaryData": {"entries": "eJw="}}),
    "a record before the operator makes it": lambda s, a: create(s, a, "bellwether-undo-other"),
    "a record's end": lambda s, a: a.delete(CONFIG_MAPS, s.namespace, f"{RECORD}.0"),
    "a record without its labels": lambda s, a: merge(s, a, RECORD, {"metadata": {"labels": None}}),
    "a record without its finalizer": lambda s, a: merge(s, a, RECORD, {"metadata": {"finalizers": None}}),
    "a part of a record under another name": lambda s, a: create(s, a, "innocent", **{PART_LABEL: "shard"}),
    "a label that makes a part of it": lambda s, a: merge(s, a, "theirs", {"metadata": {"labels": {PART_LABEL: "x"}}}),
    "an audit entry": lambda s, a: merge(s, a, f"{AUDIT}.1", {"data": {"entries": "0"}}),
    "the end of an audit log": lambda s, a: a.delete(CONFIG_MAPS, s.namespace, f"{AUDIT}.1"),
    "a later audit segment": lambda s, a: create(s, a, f"{AUDIT}.2", **{LABEL: SEGMENT}),
}


def accounts(stage: Stage, audited: AuditedApiServer) -> dict[str, KubernetesClient]:
    """Who may write ConfigMaps by RBAC: a ServiceAccount, and a person with the cluster role edit."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "editors", "namespace": stage.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "too-generous"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": EDITOR}],
    }
    audited.kubectl("apply", "-f", "-", stdin=json.dumps(binding))
    person = connect(audited.kubeconfig_for(EDITOR, ()))
    until(lambda: not refused(lambda: create(stage, person, "theirs")))
    return {"account": stage.by(STRANGER), "person": person}


@pytest.mark.parametrize("who", ["account", "person"])
def test_others_cannot_write(stage: Stage, audited: AuditedApiServer, who: str) -> None:
    api = accounts(stage, audited)[who]
    create(stage, api, "theirs")
    before = [o for o in stage.admin.list(CONFIG_MAPS, stage.namespace) if o["metadata"]["name"].startswith("bellw")]
    for what, write in FORGED.items():
        with pytest.raises(Terminal, match="written by the operator only") as caught:
            write(stage, api)
        assert "rejected by the admission policy bw-bellwether-records" in str(caught.value), what
    after = [o for o in stage.admin.list(CONFIG_MAPS, stage.namespace) if o["metadata"]["name"].startswith("bellw")]
    assert after == before
    api.delete(CONFIG_MAPS, stage.namespace, "theirs")


def test_exported_record_may_be_deleted_by_writers_of_config_maps(stage: Stage) -> None:
    stranger = stage.by(STRANGER)
    create(stage, stage.by(OPERATOR), "bellwether-export-main.1a2b3c4d")
    stranger.delete(CONFIG_MAPS, stage.namespace, "bellwether-export-main.1a2b3c4d")


def test_an_administrator_repairs_a_record(stage: Stage, audited: AuditedApiServer) -> None:
    ann = connect(audited.kubeconfig_for("ann", ("system:masters",)))
    record = ConfigMapRecords(ann, stage.namespace, "main")
    assert record.take_over("the-cluster").epoch == 2
    assert refused(lambda: merge(stage, stage.by(STRANGER), RECORD, {"data": {"epoch": "1"}}))


def test_the_operator_writes_and_deletes_its_records(stage: Stage) -> None:
    record = ConfigMapRecords(stage.by(OPERATOR), stage.namespace, "main")
    record.take_over("the-cluster")
    record.delete()
    assert record.read() is None
