"""Each command of the pages that changes something: it is run, and the change is looked for in Kafka and the API.

In: an ``Installation``, healthy for ``ACTS``, broken for ``PARTINGS``, which go in their order and end the policy.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, CONFIG_MAPS, POLICIES, Object
from testkit.processes.person_shell import Ended
from testkit.processes.sites import POLICY
from testkit.runbooks.chart_release import HOME, OPERATOR
from testkit.runbooks.installation import FROZEN, SICK, Installation
from waiting import limit, until

Act = Callable[[Installation, str], None]

DEMOTE = "bellwether demote BROKER --policy NAME -n NAMESPACE --reason WHY"
RELEASE = "bellwether release BROKER --policy NAME -n NAMESPACE"
SUSPEND = "bellwether suspend --policy NAME -n NAMESPACE"
PATCH = 'kubectl patch lp NAME -n NAMESPACE --type merge -p \'{"spec":{"suspend":true}}\''
RESUME = "bellwether resume --policy NAME -n NAMESPACE"
ENFORCE = 'kubectl patch lp NAME -n NAMESPACE --type merge -p \'{"spec":{"mode":"Enforce"}}\''
SUSPEND_ALL, RESUME_ALL = "bellwether suspend --all", "bellwether resume --all"
DEMOTE_OFFLINE = "bellwether demote BROKER --bootstrap HOST:PORT --record FILE"
PROMOTE_OFFLINE = "bellwether promote BROKER --bootstrap HOST:PORT --record FILE"
DRAIN = "bellwether drain BROKER --policy NAME -n NAMESPACE --accept-unavailable-writes"
DRAINED = "bellwether drain BROKER --policy NAME -n NAMESPACE --end"
RECORD = "bellwether record --policy NAME -n NAMESPACE --output-file FILE"
REPLAY = "bellwether replay FILE"


def demote_and_release(it: Installation, text: str) -> None:
    """A person moves all leaders away and back; the operator's account, which a pod would have, may not."""
    before = it.site.orders()
    _ended_well(it.act(DEMOTE))
    until_led(it, SICK, 0)
    _ended_well(it.act(RELEASE))
    it.site.until_restored(before)
    assert text in (DEMOTE, RELEASE)
    refused = it.run(DEMOTE, deployment=OPERATOR)
    assert refused.status == 1, refused
    assert "spec.override is set by users" in " ".join(refused.errors.split()), refused


def demote_for_a_while(it: Installation, text: str) -> None:
    """The override has an end."""
    before = it.site.orders()
    _ended_well(it.act(text))
    assert override(it)["until"]
    _ended_well(it.act(RELEASE))
    it.site.until_restored(before)


def promote(it: Installation, text: str) -> None:
    """The override holds the broker's leaders on it until it is released."""
    _ended_well(it.act(text))
    assert override(it)["state"] == "Promoted"
    assert ("--for" in text) == ("until" in override(it))
    _ended_well(it.act(RELEASE))
    assert override(it) == {}


def drain_and_end(it: Installation, text: str) -> None:
    """The broker is emptied for a restart and leads again afterwards."""
    before = it.site.orders()
    _ended_well(it.act(DRAIN))
    until_led(it, SICK, 0)
    assert override(it)["acceptUnavailableWrites"] is True
    _ended_well(it.act(DRAINED))
    it.site.until_restored(before)
    assert text in (DRAIN, DRAINED)


def suspend_and_resume(it: Installation, text: str) -> None:
    """Nothing moves, whatever people and signals ask for, until the policy goes on."""
    site, before = it.site, it.site.orders()
    _ended_well(it.act(PATCH if text == PATCH else SUSPEND))
    site.until(lambda: site.status()["mode"] == "Suspended", 30, "it is suspended", site.status)
    site.demote(SICK)
    site.until(lambda: site.status()["plan"]["moves"] > 0, 30, "it plans", site.status)
    assert site.orders() == before
    _ended_well(it.act(RESUME))
    until_led(it, SICK, 0)
    site.lift(SICK)
    site.until_restored(before)
    assert text in (SUSPEND, PATCH, RESUME)


def enforce(it: Installation, text: str) -> None:
    """A policy that observed acts."""
    it.site.change(mode="Observe")
    it.site.until(lambda: it.site.status()["mode"] == "Observe", 30, "it observes", it.site.status)
    _ended_well(it.act(text))
    it.site.until(lambda: it.site.status()["mode"] == "Enforce", 30, "it acts", it.site.status)


def suspend_and_resume_all(it: Installation, text: str) -> None:
    """An administrator stops every policy, and the operator has read it when the command returns."""

    def suspended() -> set[bool]:
        return {bool(one["spec"].get("suspend")) for one in it.site.api.list(POLICIES, it.site.namespace)}

    stopped = it.shell(it.filled(SUSPEND_ALL), it.environment())
    _ended_well(stopped)
    assert suspended() == {True}
    assert it.site.status()["mode"] == "Suspended"
    _ended_well(it.shell(it.filled(RESUME_ALL), it.environment()))
    assert suspended() == {False}
    it.site.until_reported()
    assert text in (SUSPEND_ALL, RESUME_ALL)


def without_operator(it: Installation, text: str) -> None:
    """Leaders leave and return by a file alone, next to a policy that is suspended."""
    site, before = it.site, it.site.orders()
    _ended_well(it.act(SUSPEND))
    site.until(lambda: site.status()["mode"] == "Suspended", 30, "it is suspended", site.status)
    _ended_well(it.act(DEMOTE_OFFLINE, FILE="by-hand.undo"))
    until_led(it, SICK, 0)
    _ended_well(it.act(PROMOTE_OFFLINE, FILE="by-hand.undo"))
    site.until_restored(before)
    _ended_well(it.act(RESUME))
    site.until_reported()
    assert text in (DEMOTE_OFFLINE, PROMOTE_OFFLINE)


def approve_plan(it: Installation, text: str) -> None:
    """The plan that is proposed is applied."""
    _ended_well(it.act(text))
    assert it.site.rebalance()["state"] == "Done"


def request_plan(it: Installation, text: str) -> None:
    """A new plan is made; the person does not approve it."""
    command = subprocess.Popen(
        ["/bin/sh", "-c", it.filled(text)],
        env=it.person(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    it.plan()
    printed, _ = command.communicate(timeout=limit(60))
    assert command.returncode == 0, printed
    assert f"bellwether approve {it.placeholders['DIGEST']}" in printed


def record_and_replay(it: Installation, text: str) -> None:
    """Ctrl-C ends the recording, by an administrator; the replay judges as the operator did."""
    judged = "broker 1 Unknown -> Healthy SignalsPassing"
    it.placeholders["FILE"] = str(it.directory / f"incident-{text.split()[1]}.jsonl.gz")
    words = [sys.executable, "-m", *it.filled(RECORD).split()]
    command = subprocess.Popen(words, env=it.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    it.site.until(lambda: judged in it.act(REPLAY).printed, 60, "enough is recorded to judge", command.poll)
    command.send_signal(signal.SIGINT)
    printed, _ = command.communicate(timeout=limit(60))
    assert command.returncode == 0, printed
    replayed = it.act(REPLAY)
    _ended_well(replayed)
    assert judged in replayed.printed, replayed
    assert "no differences from the operator's recorded decisions" in replayed.printed, replayed
    assert text in (RECORD, REPLAY)


def continue_process(it: Installation, text: str) -> None:
    """A process that is stopped goes on."""
    broker = it.kafka.broker(FROZEN).process
    broker.pause()
    try:
        until(lambda: state_of(broker.pid) == "T", 10, "the broker is stopped")
        _ended_well(it.act(text, PID=str(broker.pid)))
        until(lambda: state_of(broker.pid) in "RS", 10, "the broker goes on")
    finally:
        broker.resume()


def stop_operator(it: Installation, text: str) -> None:
    """The Deployment of the chart is to have no replica."""
    _ended_well(it.run(text))
    found = json.loads(it.server.kubectl("get", "deploy", OPERATOR, "-n", HOME, "-o", "json"))
    assert found["spec"]["replicas"] == 0
    it.server.kubectl("scale", f"deploy/{OPERATOR}", "-n", HOME, "--replicas=2")


def apply_definitions(it: Installation, text: str) -> None:
    """All definitions are applied over those that are there."""
    ended = it.run(text)
    _ended_well(ended)
    assert ended.printed.count("customresourcedefinition") == 4, ended


ACTS: Mapping[str, Act] = {
    "bellwether rebalance --policy NAME -n NAMESPACE": request_plan,
    "bellwether approve DIGEST --policy NAME -n NAMESPACE": approve_plan,
    DEMOTE: demote_and_release,
    RELEASE: demote_and_release,
    f"{DEMOTE} --for 12h": demote_for_a_while,
    "bellwether promote BROKER --policy NAME -n NAMESPACE": promote,
    "bellwether promote BROKER --policy NAME -n NAMESPACE --for 2h": promote,
    DRAIN: drain_and_end,
    DRAINED: drain_and_end,
    SUSPEND: suspend_and_resume,
    PATCH: suspend_and_resume,
    RESUME: suspend_and_resume,
    ENFORCE: enforce,
    SUSPEND_ALL: suspend_and_resume_all,
    RESUME_ALL: suspend_and_resume_all,
    DEMOTE_OFFLINE: without_operator,
    PROMOTE_OFFLINE: without_operator,
    RECORD: record_and_replay,
    REPLAY: record_and_replay,
    "kill -CONT PID": continue_process,
    "kubectl scale deploy/bellwether-operator -n BELLWETHER --replicas=0": stop_operator,
    "kubectl apply --server-side -f crds/": apply_definitions,
}
"""By command as the pages have it, on healthy brokers."""


def abandon(it: Installation, text: str) -> None:
    """The deletion restores nothing, and the record is exported. The other policy would take over the cluster."""
    before = it.site.orders()
    it.site.delete(name="second")
    it.site.until(lambda: it.site.gone("second"), 30, "the other policy is gone")
    _ended_well(it.run(text))
    it.site.delete()
    it.site.until(it.site.gone, 30, "the policy is gone")
    assert it.site.orders() == before
    it.placeholders |= {"EXPORT": export_of(it), "FILE": "record.json"}


def keep_export(it: Installation, text: str) -> None:
    """The export is a record in a file."""
    _ended_well(it.run(text))
    document = json.loads((it.directory / "record.json").read_text())
    assert [one["broker"] for one in document["demoted"]] == [SICK]


def import_export(it: Installation, text: str) -> None:
    """The policy that is made again, and does not act yet, has the record."""
    it.make_policy(suspend=True)
    it.site.until(lambda: it.site.status().get("mode") == "Suspended", 60, "the policy is made again", it.site.ready)
    it.site.until(lambda: it.site.record() is not None, 60, "the operator has reached Kafka", it.site.ready)
    _ended_well(it.run(text))
    record = it.site.record()
    assert record is not None
    assert list(record.demoted) == [SICK]
    assert len(it.site.baselines(record)) > 0


def delete_export(it: Installation, text: str) -> None:
    """The export is gone."""
    _ended_well(it.run(text))
    assert it.site.api.find(CONFIG_MAPS, it.site.namespace, it.placeholders["EXPORT"]) is None


def free_namespace(it: Installation, text: str) -> None:
    """Without an operator nothing holds the namespace's objects any more, and the record is in a file."""
    it.site.processes[0].kill()
    it.site.delete()
    _ended_well(it.run(text))
    it.site.until(it.site.gone, 30, "the policy is gone")
    assert list((it.directory / "exports").iterdir())


PARTINGS: Mapping[str, Act] = {
    "kubectl annotate lp NAME -n NAMESPACE bellwether.dev/abandon=true": abandon,
    "kubectl get configmap EXPORT -n NAMESPACE -o jsonpath='{.data.record\\.json}' > FILE": keep_export,
    "bellwether undo-record import --policy NAME -n NAMESPACE FILE": import_export,
    "kubectl delete configmap EXPORT -n NAMESPACE": delete_export,
    "bellwether uninstall -n NAMESPACE --without-operator --export-to DIRECTORY": free_namespace,
}
"""The commands that follow the end of a policy, in their order."""


def until_led(it: Installation, broker: int, partitions: int) -> None:
    """Wait until a broker leads so many of the site's partitions."""
    wanted = f"broker {broker} leads {partitions}"
    it.site.until(lambda: it.site.led_by(broker) == partitions, 60, wanted, it.site.partitions)


def override(it: Installation) -> Object:
    """The override of broker 1; empty where there is none."""
    found = it.site.api.get(BROKER_HEALTHS, it.site.namespace, f"{POLICY}-{SICK}")
    return dict(found["spec"].get("override") or {})


def export_of(it: Installation) -> str:
    """The name of the one ConfigMap with an export."""
    names = [str(m["metadata"]["name"]) for m in it.site.api.list(CONFIG_MAPS, it.site.namespace)]
    (found,) = [name for name in names if name.startswith(f"bellwether-export-{POLICY}.")]
    return found


def state_of(pid: int | None) -> str:
    """The state of a process, as the kernel has it: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _ended_well(ended: Ended) -> None:
    assert ended.status == 0, f"{ended.printed}{ended.errors}"
