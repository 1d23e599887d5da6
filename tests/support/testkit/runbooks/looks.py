"""What each command of the pages that only looks has to show on the installation's broken cluster.

In: an ``Installation`` whose brokers are broken. Out: faults of a command, none where it does what the pages say.
Broker 1 is sick and demoted, broker 2 is frozen and fenced, broker 3 is left. What a kubelet would have to do
(``kubectl exec``, ``logs``, ``top``) is run up to the kubelet: kubectl and the API server find pod and container. The
command inside a container is then run with the container's account and variables.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple
from urllib.request import urlopen

from bellwether.cli.exit_status import FOUND, OFFLINE
from testkit.processes.person_shell import Ended
from testkit.runbooks.chart_release import HOME, LOAD_CONFIG, OPERATOR, REPLICA
from testkit.runbooks.installation import FROZEN, Installation
from testkit.runbooks.page_commands import PageCommand
from waiting import limit, until


class Look(NamedTuple):
    """A pattern that is found in what is printed, and the exit status."""

    pattern: str
    status: int = 0


LEASES = Look(r"\ALease +Holder +Renewed\n(?s:.*)^\S+ +\S*[0-9a-f-]{36} +\d{4}-\d\d-\d\dT\S+$")
BY_KUBELET = Look(r"\A\Z")
PROBED = Look(r"^1 .* Failing .* Passing .*cannot connect.*\n2 .* Failing .*\n3 .* Passing .* Passing ", FOUND)
CERTIFICATE = r"^notBefore=.*\nnotAfter=.*\n"
DOCTOR = r"AllReplicasLost +1 .*\nUnderMinIsr +1 .*\nAtMinIsr +13 (?s:.*)broker 2 is down: 14 partitions at risk"
HISTORY = Look(r"broker 1 demoted by signals: ExternallyUnreachable(?s:.*)result: \d+ reordered, \d+ elected")
BLOCKED = Look(r'"partition":1,"reason":"OnlyReplica"')

LOOKS: Mapping[str, Look] = {
    "bellwether status --policy NAME -n NAMESPACE": Look(r"\APolicy \S+: \w+\n(?s:.*)What to do:\n- \w+ \("),
    "bellwether explain BROKER --policy NAME -n NAMESPACE": Look(
        r"\ABroker [12] of policy \S+ is (Sick: ExternallyUnreachable|Down: BrokerDown), since (?s:.*)what to do: "
    ),
    "bellwether doctor --policy NAME -n NAMESPACE": Look(DOCTOR, OFFLINE),
    "bellwether doctor --policy NAME -n NAMESPACE --topic TOPIC": Look(r"-lonely-0: AllReplicasLost: no lea", OFFLINE),
    "bellwether history --policy NAME -n NAMESPACE --broker BROKER": HISTORY,
    "bellwether history --policy NAME -n NAMESPACE --since 1h": HISTORY,
    "bellwether history --policy NAME -n NAMESPACE --since 24h": HISTORY,
    "bellwether history --policy NAME -n NAMESPACE --since 3d": HISTORY,
    "bellwether plan --policy NAME -n NAMESPACE": Look(r"the demoted broker has the only replica"),
    "bellwether losses --store STORE": Look(r"^worst loss of one broker: "),
    "bellwether rebalance show --store STORE": Look(r"\bplan [0-9a-f]{32}"),
    "bellwether verify-plan --problem STORE/problems/PROBLEM --loads STORE/loads/LOADS --plan STORE/plans/DIGEST": Look(
        r"^plan [0-9a-f]{32}: verified$"
    ),
    "bellwether probe reachability --once --policy NAME -n NAMESPACE": PROBED,
    "bellwether undo-record show --policy NAME -n NAMESPACE": Look(
        r"^broker 1 is demoted since .*\n\d+ partitions are"
    ),
    "bellwether undo-record export --policy NAME -n NAMESPACE": Look(r'"demoted":\[\{"broker":1,"cause":"Signals"'),
    "kafka-cluster.sh cluster-id --bootstrap-server HOST:PORT": Look(r"Cluster ID: \S{22}$"),
    "kafka-metadata-quorum.sh --bootstrap-server HOST:PORT describe --status": Look(r"^LeaderId: +101$"),
    "kafka-reassign-partitions.sh --bootstrap-server HOST:PORT --list": Look(r"^No partition reassignments found.$"),
    "kafka-topics.sh --bootstrap-server HOST:PORT --describe --at-min-isr-partitions": Look(
        r"(.*Isr: (3,1|1,3)\t.*\n){12}"
    ),
    "kafka-topics.sh --bootstrap-server HOST:PORT --describe --under-min-isr-partitions": Look(r"-pair\t.*Isr: 3\t"),
    "kafka-topics.sh --bootstrap-server HOST:PORT --describe --unavailable-partitions": Look(
        r"-lonely\t.*Leader: none"
    ),
    "kafka-topics.sh --bootstrap-server HOST:PORT --describe --under-replicated-partitions": Look(r"-pair\t.*Isr: 3\t"),
    "kubectl auth can-i patch brokerhealths --subresource=status -n NAMESPACE "
    "--as system:serviceaccount:BELLWETHER:ACCOUNT": Look(r"\Ayes\n\Z"),
    "kubectl auth can-i update configmaps -n NAMESPACE --as system:serviceaccount:BELLWETHER:bellwether-operator": Look(
        r"\Ayes\n\Z"
    ),
    "kubectl describe bh NAME-BROKER -n NAMESPACE": Look(
        r"Reason: +ExternallyUnreachable(?s:.*)\nEvents:\n.*\n.*\n(?s:.*)Warning +Demoted "
    ),
    "kubectl exec -n BELLWETHER POD -- bellwether probe reachability --once --policy NAME -n NAMESPACE": PROBED,
    "kubectl exec -n BELLWETHER deploy/bellwether-operator -- "
    "bellwether check --lease-namespace BELLWETHER -n NAMESPACE": Look(r"\bsecretless: .*kafka-user", FOUND),
    "kubectl exec -n BELLWETHER deploy/bellwether-operator -- "
    "bellwether probe reachability --once --policy NAME -n NAMESPACE": PROBED,
    "kubectl exec -n BELLWETHER deploy/bellwether-operator -- bellwether status --policy NAME -n NAMESPACE": Look(
        r"Lease renewed \d+ s ago\.$"
    ),
    "kubectl exec -n BELLWETHER deploy/bellwether-sampler -- "
    "bellwether sample --once --policy NAME -n NAMESPACE --load-config /etc/bellwether/load.yaml": Look(r"BROKER"),
    "kubectl exec -n NAMESPACE POD -c bellwether-quarantine-agent -- bellwether quarantine-agent --once": Look(
        r"^Stopped +no$", FOUND
    ),
    "kubectl get --raw /api/v1/namespaces/BELLWETHER/pods/POD:8080/proxy/readyz": BY_KUBELET,
    "kubectl get bh -n NAMESPACE -o jsonpath='{range .items[*]}{.spec.brokerId} {.status.rack}{\"\\n\"}{end}'": Look(
        r"\A1 .*\n2 .*\n3 .*\n\Z"
    ),
    "kubectl get configmaps -n NAMESPACE -l bellwether.dev/policy=NAME": Look(r"^bellwether-undo-main "),
    "kubectl get deploy,pods -n BELLWETHER -l app.kubernetes.io/component=operator -o wide": Look(
        r"^deployment.apps/bellwether-operator +0/2 (?s:.*)^pod/bellwether-operator-\S+ +0/1 +Pending "
    ),
    "kubectl get events -n NAMESPACE --field-selector reason=InvalidPolicy": Look(r"Warning +InvalidPolicy .*spec\.x"),
    "kubectl get events -n NAMESPACE --field-selector reason=ReplicaSetConflict": Look(
        r"ReplicaSetConflict .*orders-7"
    ),
    "kubectl get jobs -n NAMESPACE -l bellwether.dev/policy=NAME": Look(r"^bellwether-\S+ +Complete "),
    "kubectl get kafkarebalance --all-namespaces": Look(r"^\S+ +my-rebalance +orders "),
    "kubectl get lease -n BELLWETHER "
    "-o custom-columns=Lease:.metadata.name,Holder:.spec.holderIdentity,Renewed:.spec.renewTime": LEASES,
    "kubectl get lease -n NAMESPACE -l bellwether.dev/policy=NAME "
    "-o custom-columns=Lease:.metadata.name,Holder:.spec.holderIdentity,Renewed:.spec.renewTime": LEASES,
    "kubectl get lease -n BELLWETHER -o custom-columns='Lease:.metadata.name,"
    "Policy:.metadata.annotations.bellwether\\.dev/policy'": Look(
        r"\ALease +Policy\n(?s:.*)^bellwether-\S+ +\S+/main$"
    ),
    "kubectl get lease -n BELLWETHER bellwether-quarantine-NAMESPACE.NAME-BROKER --ignore-not-found "
    "-o jsonpath='{.spec.renewTime}{\"\\n\"}'": Look(r"\A\d{4}-\d\d-\d\dT\S+\n\Z"),
    "kubectl get lp --all-namespaces": Look(
        r" main .* OfflinePartitions +1 +1 +0 +1 +14 (?s:.*) second .* ClusterClaimed "
    ),
    "kubectl get lp -n NAMESPACE -o wide": Look(
        r" MESSAGE.*\n(?s:.*)^main .* 1 partition without a leader: no reads, no writes"
    ),
    "kubectl get lp,bh --all-namespaces": Look(
        r" REASON .*\n.*/main .* OfflinePartitions (?s:.*) REASON .* WHY .*\n.*/main-1 .* ExternallyUnreachable "
    ),
    "kubectl get lp NAME -n NAMESPACE": Look(
        r"\ANAME +MODE +READY +REASON .*\nmain +Enforce +True +OfflinePartitions "
    ),
    "kubectl get lp NAME -n NAMESPACE -o jsonpath='{.spec.demotion}{\"\\n\"}'": Look(r'"maxBrokers":"20%"'),
    "kubectl get lp NAME -n NAMESPACE -o jsonpath='{.spec.detection}{\"\\n\"}'": Look(
        r'"vantages":\["zone-a","zone-b"\]'
    ),
    "kubectl get lp NAME -n NAMESPACE -o jsonpath='{.spec.placement}{\"\\n\"}'": Look(r'"racks":\["eu-west-9z"\]'),
    "kubectl get lp NAME -n NAMESPACE -o jsonpath='{.status.blockedPartitions}{\"\\n\"}'": BLOCKED,
    "kubectl get lp NAME -n NAMESPACE -o jsonpath='{.status.clusterId}{\"\\n\"}'": Look(r"\AA{22}\n\Z"),
    "kubectl get lp NAME -n NAMESPACE -o yaml": Look(r"^spec:\n(?s:.*)^status:\n"),
    "kubectl get pods -n BELLWETHER -l 'app.kubernetes.io/name=bellwether,app.kubernetes.io/component!=operator' "
    "-o wide": Look(r"\A(?!(?s:.*)-operator-)NAME (?s:.*)^bellwether-prober-reachability-zone-a-\S+ "),
    "kubectl get pods -n NAMESPACE -l strimzi.io/cluster=CLUSTER -o wide": Look(r"NODE (?s:.*)^orders-brokers-"),
    "kubectl get secret CLUSTER-cluster-ca-cert -n NAMESPACE -o jsonpath='{.data.ca\\.crt}' "
    "| base64 -d | openssl x509 -noout -dates": Look(CERTIFICATE),
    "kubectl get secret SECRET -n NAMESPACE -o jsonpath='{.data.user\\.crt}' "
    "| base64 -d | openssl x509 -noout -dates -subject": Look(rf"{CERTIFICATE}subject="),
    "kubectl logs -n BELLWETHER -l app.kubernetes.io/component=operator --prefix --tail=-1 --since=15m": BY_KUBELET,
    "kubectl logs -n BELLWETHER POD --since=15m": BY_KUBELET,
    "kubectl logs -n BELLWETHER deploy/bellwether-sampler --since=15m": BY_KUBELET,
    "kubectl logs -n NAMESPACE job/JOB": BY_KUBELET,
    "kubectl logs -n NAMESPACE POD -c bellwether-quarantine-agent": BY_KUBELET,
    "kubectl top pod -n BELLWETHER": BY_KUBELET,
    "openssl s_client -connect BROKER:PORT -showcerts </dev/null | openssl x509 -noout -dates -issuer": Look(
        rf"{CERTIFICATE}issuer="
    ),
}
"""By command as the pages have it."""

CAUSES: Mapping[str, str] = {
    "BellwetherBrokerDemoted": r"broker 1 is demoted \(ExternallyUnreachable\)",
    "BellwetherBrokerDown": r"broker 2 is Down: fenced by the controller",
    "BellwetherBrokerSick": r"^1 +Sick +ExternallyUnreachable ",
    "BellwetherClusterChanged": r"ClusterChanged\n(?s:.*)is pinned to A{22}",
    "BellwetherClusterClaimed": r"ClusterClaimed\n(?s:.*)/main \(.*already manages Kafka cluster",
    "BellwetherKafkaAuthenticationFailing": r"CredentialsUnusable\n(?s:.*)/kafka-user does not exist",
    "BellwetherNoActiveOperator": r"CredentialsUnusable\n(?s:.*)/kafka-user does not exist",
    "BellwetherPartitionMovesBlocked": r"^Blocked: 1 partitions OnlyReplica: The demoted broker has the partition's",
    "BellwetherPartitionsAtRisk": r"^At risk: 12 partitions AtMinIsr: ",
    "BellwetherPartitionsRejectWrites": r"^At risk: 1 partitions UnderMinIsr: ",
    "BellwetherPartitionsWithoutLeader": r"^At risk: 1 partitions AllReplicasLost: ",
    "BellwetherPlacementUnsuitable": r"no registered broker is in rack 'eu-west-9z'",
    "BellwetherReconcileFailing": r"CredentialsUnusable\n(?s:.*)/kafka-user does not exist",
    "BellwetherReplicaOrdersNotRestored": r"^1 +Sick .* yes \(ExternallyUnreachable\)",
    "BellwetherSickBrokerLeading": r"^1 +Sick +ExternallyUnreachable +.* 1 +yes ",
}
"""What the first command of a page shows: the cause of its alert, where the installation is in that state."""

_EXEC = re.compile(r"kubectl exec (.+?) -- (.+)")
_ACCOUNT = re.compile(r"--as system:serviceaccount:(\S+):(\S+)")
_SERVED = re.compile(r"/pods/POD:(\d+)/proxy(/\w+)$")
_NO_KUBELET = {
    "kubectl exec": r"pod \S+ does not have a host assigned$",
    "kubectl top": r"^error: Metrics API not available$",
    "kubectl get --raw": r"\(BadRequest\): address not allowed$",
}
"""The one error that is right where a kubelet, the metrics server or a pod's address is missing."""


def faults(installation: Installation, command: PageCommand, *, first: bool) -> list[str]:
    """What is wrong with a command of a page. ``first``: it is the page's first one, which shows the cause."""
    text = command.text
    if command.query:
        return _query_faults(installation, command)
    look = LOOKS[text]
    ended, found = _ended(installation, command)
    patterns = [look.pattern, *([CAUSES[command.page]] if first and command.page in CAUSES else [])]
    found += [f"does not show {p!r}" for p in patterns if not re.search(p, ended.printed, re.MULTILINE)]
    if ended.status != look.status:
        found.append(f"exit status {ended.status}, not {look.status}")
    if "No resources found" in ended.errors:
        found.append("no object matches")
    if (account := _ACCOUNT.search(installation.filled(text, command.page))) is not None:
        installation.server.kubectl("get", "serviceaccount", account[2], "-n", account[1])
    shown = f"$ {installation.filled(text, command.page)}\n{ended.printed}{ended.errors}"
    return [f"{command.page}: {fault}\n{shown}" for fault in found]


def _ended(installation: Installation, command: PageCommand) -> tuple[Ended, list[str]]:
    """The command as it ended, and what is wrong so far."""
    text, page = command.text, command.page
    refusal = next((error for start, error in _NO_KUBELET.items() if text.startswith(start)), None)
    if refusal is None:
        return installation.run(text, page, OPERATOR if text.startswith("bellwether ") else ""), []
    ended = installation.run(text, page)
    right = ended.status == 1 and re.search(refusal, ended.errors, re.MULTILINE)
    found = [] if right else ["kubectl did not get as far as the kubelet"]
    if (served := _SERVED.search(text)) is not None:
        return Ended(0, "", ""), [*found, *_not_served(installation, *served.groups())]
    if (inside := _EXEC.fullmatch(text)) is None:
        return Ended(0, ended.printed, ""), found
    return _inside(installation, *(installation.filled(part, page) for part in inside.groups())), found


def _inside(installation: Installation, where: str, what: str) -> Ended:
    """The command in a container: of the pod that a Deployment or a name gives, or of the quarantine agent."""
    words = shlex.split(where)
    pod = next(word for word in words if word.startswith(("deploy/", HOME, "orders-")) and word != HOME)
    environment = installation.environment()
    if "bellwether-quarantine-agent" in words:
        environment["BELLWETHER_QUARANTINE_AGENT_PID"] = str(installation.kafka.broker(FROZEN).process.pid)
    else:
        deployment = pod.removeprefix("deploy/").removesuffix(f"-{REPLICA}")
        environment = installation.environment(deployment)
    return installation.shell(what.replace(LOAD_CONFIG, str(installation.release.load_config)), environment)


def _not_served(installation: Installation, port: str, path: str) -> list[str]:
    """A port that the operator's pod does not have; a page that the operator does not serve with status 200."""
    ports = {one["containerPort"] for one in installation.release.container(OPERATOR)["ports"]}
    found = [] if int(port) in ports else [f"no port {port}"]
    with urlopen(f"http://127.0.0.1:{installation.health_port}{path}", timeout=limit(10)) as answer:
        return found if answer.status == 200 else [*found, f"{path}: status {answer.status}"]


EMPTY = ("certificate_expiry", "sampler", "kubernetes_requests")
"""Metrics that have no values here: no TLS, no sampler, no request refused."""


def _query_faults(installation: Installation, command: PageCommand) -> list[str]:
    """A query is PromQL, and gives series where what it asks about runs here."""
    if any(word in command.text for word in EMPTY):
        installation.ask(command.text, command.page)
        return []
    until(lambda: installation.ask(command.text, command.page), 30, f"{command.text} gives series")
    return []
