"""Objects that the models and the real API server must both refuse, with a message that names the field."""

from __future__ import annotations

from testkit.kubernetes.api_objects import (
    BY_HAND,
    DRAIN,
    OAUTH,
    REACHABILITY,
    SASL,
    Body,
    at_prometheus,
    health,
    kafka,
    naming,
    oauth_sasl,
    plugin,
    policy,
    prometheus,
    reachability,
    rebalance,
    source,
    strimzi,
    without,
)

AWS = {"region": "eu-central-1", "accessKeySecretName": "aws"}
_PROMETHEUS = "spec.prometheus"
_RULE = f"{_PROMETHEUS}.rules[0]"

BAD_SOURCES: dict[str, tuple[Body, str]] = {
    "neither Prometheus nor a plug-in": (source("empty"), "spec.prometheus"),
    "Prometheus and a plug-in": (
        source("both", **prometheus(query="up")["spec"], plugin={"type": "DiskWear"}),
        "spec.prometheus",
    ),
    "a preset is unknown": (prometheus(preset="Magic"), f"{_RULE}.preset"),
    "a preset that fails below is taken for one above": (
        prometheus(preset="RequestHandlerIdle"),
        f"{_RULE}.comparison",
    ),
    "a preset that fails above is taken for one below": (
        prometheus(preset="NodeIoStalled", comparison="Below"),
        f"{_RULE}.comparison",
    ),
    "a preset of leaders is taken for all": (prometheus(preset="ProduceLocalTimeP99"), f"{_RULE}.leadersOnly"),
    "a query and a preset at once": (prometheus(query="up", preset="NodeIoStalled"), f"{_RULE}.query"),
    "neither a query nor a preset": (prometheus(), f"{_RULE}.query"),
    "a selector without a preset": (prometheus(query="up", selector='a="b"'), f"{_RULE}.selector"),
    "a selector with braces": (prometheus(preset="NodeIoStalled", selector='{a="b"}'), f"{_RULE}.selector"),
    **{
        f"alerts are selected by {selector}": (prometheus(preset="FiringAlerts", **selected), f"{_RULE}.selector")
        for selector, selected in {
            "nothing": {},
            "no name": {"selector": 'namespace="kafka",severity="critical"'},
            "an expression": {"selector": 'alertname=~"Disk.*",namespace="kafka"'},
            "two names without an expression": {"selector": 'alertname="A|B",namespace="kafka"'},
            "names of any Kafka cluster": {"selector": 'alertname="DiskFailing"'},
        }.items()
    },
    "a threshold without quotes": (prometheus(query="up", threshold=0.5), f"{_RULE}.threshold"),
    "a plugged-in kind has a name of our own": (
        plugin("StorageLatency"),
        "spec.plugin.type",
    ),
    "a plugged-in kind's name is not in UpperCamelCase": (
        plugin("disk-wear"),
        "spec.plugin.type",
    ),
    "Prometheus with a password in the clear": (at_prometheus(basicAuthSecretName="prom"), f"{_PROMETHEUS}.url"),
    "Prometheus with two credentials": (
        at_prometheus(url="https://prometheus:9090", basicAuthSecretName="prom", bearerTokenSecretName="prom"),
        f"{_PROMETHEUS}.bearerTokenSecretName",
    ),
    "a header that holds credentials": (
        at_prometheus(headers=[{"name": "Authorization", "value": "x"}]),
        f"{_PROMETHEUS}.headers[0].name",
    ),
    "a header with a line break": (
        at_prometheus(headers=[{"name": "X-Scope-OrgID", "value": "a\r\nHost: b"}]),
        f"{_PROMETHEUS}.headers[0].value",
    ),
}

BAD_POLICIES: dict[str, tuple[Body, str]] = {
    "a source is named twice": (naming("prom", "prom"), "spec.detection.signalSources"),
    "a source's name is none": (naming("My_Source"), "spec.detection.signalSources[0].name"),
    "a source's selector has braces": (
        naming({"name": "prom", "selector": '{a="b"}'}),
        "spec.detection.signalSources[0].selector",
    ),
    "mode is missing": (without(policy(), "spec", "mode"), "spec.mode"),
    "mode is another word": (policy(mode="Dance"), "spec.mode"),
    "kafka is missing": (without(policy(), "spec", "kafka"), "spec.kafka"),
    "bootstrap servers are missing": (policy(kafka={}), "spec.kafka.bootstrapServers"),
    "a cluster is named twice": (policy(kafka=kafka(strimzi={"clusterName": "c"})), "spec.kafka.bootstrapServers"),
    "a Strimzi cluster without a name": (policy(kafka={"strimzi": {}}), "spec.kafka.strimzi.clusterName"),
    "a Strimzi cluster's name is none": (
        policy(kafka=strimzi(clusterName="My_Cluster")),
        "spec.kafka.strimzi.clusterName",
    ),
    "a listener's name is none": (policy(kafka=strimzi(listener="TLS-9093")), "spec.kafka.strimzi.listener"),
    "a KafkaUser and credentials as well": (
        policy(kafka=strimzi(userName="u", listener="tls", tls={}, sasl=SASL)),
        "spec.kafka.strimzi",
    ),
    "credentials for whichever listener": (policy(kafka=strimzi(tls={}, sasl=SASL)), "spec.kafka.strimzi"),
    "bootstrap servers are empty": (policy(kafka={"bootstrapServers": []}), "spec.kafka.bootstrapServers"),
    "a bootstrap server has no port": (policy(kafka={"bootstrapServers": ["kafka"]}), "spec.kafka.bootstrapServers[0]"),
    "a bootstrap server's port is too high": (
        policy(kafka={"bootstrapServers": ["good:9092", "kafka:65536"]}),
        "spec.kafka.bootstrapServers[1]",
    ),
    "a bootstrap server is a URL": (
        policy(kafka={"bootstrapServers": ["https://kafka:9092"]}),
        "spec.kafka.bootstrapServers[0]",
    ),
    "a bootstrap server ends in a newline": (
        policy(kafka={"bootstrapServers": ["kafka:9092\n"]}),
        "spec.kafka.bootstrapServers[0]",
    ),
    "a bootstrap server is named twice": (
        policy(kafka={"bootstrapServers": ["kafka:9092", "kafka:9092"]}),
        "spec.kafka.bootstrapServers",
    ),
    "too many bootstrap servers": (
        policy(kafka={"bootstrapServers": [f"kafka-{n}:9092" for n in range(33)]}),
        "spec.kafka.bootstrapServers",
    ),
    "SASL without TLS": (policy(kafka=kafka(sasl=SASL)), "spec.kafka.sasl"),
    "unknown SASL mechanism": (
        policy(kafka=kafka(tls={}, sasl={**SASL, "mechanism": "OAUTH"})),
        "spec.kafka.sasl.mechanism",
    ),
    "SASL without a password": (
        policy(kafka=kafka(tls={}, sasl={"mechanism": "PLAIN", "username": "u"})),
        "spec.kafka.sasl.passwordSecretName",
    ),
    "a Secret's name is none": (policy(kafka=kafka(tls={"caSecretName": "Kafka_CA"})), "spec.kafka.tls.caSecretName"),
    "a Secret's key is missing": (
        policy(kafka=kafka(tls={}, sasl=oauth_sasl(clientSecretRef={"name": "kafka-user"}))),
        "spec.kafka.sasl.oauth.clientSecretRef.key",
    ),
    "SCRAM without a user": (
        policy(kafka=kafka(tls={}, sasl={"mechanism": "SCRAM-SHA-512", "passwordSecretName": "kafka-user"})),
        "spec.kafka.sasl.username",
    ),
    "OAUTHBEARER without a token endpoint": (
        policy(kafka=kafka(tls={}, sasl={"mechanism": "OAUTHBEARER"})),
        "spec.kafka.sasl.oauth",
    ),
    "OAUTHBEARER with a password": (
        policy(kafka=kafka(tls={}, sasl={**SASL, "mechanism": "OAUTHBEARER", "oauth": OAUTH})),
        "spec.kafka.sasl.mechanism",
    ),
    "a token endpoint with a password's mechanism": (
        policy(kafka=kafka(tls={}, sasl={**SASL, "oauth": OAUTH})),
        "spec.kafka.sasl.oauth",
    ),
    "a token endpoint in the clear": (
        policy(kafka=kafka(tls={}, sasl=oauth_sasl(tokenEndpoint="http://login.example.com/token"))),
        "spec.kafka.sasl.oauth.tokenEndpoint",
    ),
    "a token endpoint with a password in it": (
        policy(kafka=kafka(tls={}, sasl=oauth_sasl(tokenEndpoint="https://me:hunter2@login.example.com/token"))),
        "spec.kafka.sasl.oauth.tokenEndpoint",
    ),
    "a client without a secret": (
        policy(kafka=kafka(tls={}, sasl={"mechanism": "OAUTHBEARER", "oauth": without(OAUTH, "clientSecretRef")})),
        "spec.kafka.sasl.oauth.clientSecretRef",
    ),
    "two origins of tokens": (
        policy(kafka=kafka(tls={}, sasl=oauth_sasl() | {"workloadIdentity": "msk"})),
        "spec.kafka.sasl.oauth",
    ),
    "a workload identity with a password's mechanism": (
        policy(kafka=kafka(tls={}, sasl={**SASL, "workloadIdentity": "msk"})),
        "spec.kafka.sasl.oauth",
    ),
    "an identity with other CAs": (
        policy(
            kafka=kafka(tls={"caSecretName": "ca"}, sasl={"mechanism": "OAUTHBEARER", "workloadIdentity": "msk"}),
        ),
        "spec.kafka.sasl.workloadIdentity",
    ),
    "CAs for the user of a Strimzi cluster": (
        policy(kafka=strimzi(tls={"caSecretName": "ca"})),
        "spec.kafka.tls.caSecretName",
    ),
    "addresses outside for the user of a Strimzi cluster": (
        policy(kafka=strimzi(), detection={"externalReachability": {"bootstrapServers": ["kafka:9092"]}}),
        "spec.detection.externalReachability.bootstrapServers",
    ),
    "an AWS region that is none": (
        policy(kafka=kafka(tls={}, sasl={"mechanism": "OAUTHBEARER", "awsMskIam": {**AWS, "region": "Frankfurt"}})),
        "spec.kafka.sasl.awsMskIam.region",
    ),
    "a proxy with a password in it": (
        policy(kafka=kafka(tls={}, sasl=oauth_sasl(proxy={"url": "http://me:hunter2@proxy:3128"}))),
        "spec.kafka.sasl.oauth.proxy.url",
    ),
    "a user's Secret without TLS": (
        policy(kafka=kafka(userSecretName="bellwether")),
        "spec.kafka.userSecretName",
    ),
    "a user's Secret next to SASL": (
        policy(kafka=kafka(tls={}, userSecretName="bellwether", sasl=SASL)),
        "spec.kafka.userSecretName",
    ),
    "a user's Secret next to a certificate": (
        policy(kafka=kafka(tls={"certificateSecretName": "pair"}, userSecretName="bellwether")),
        "spec.kafka.userSecretName",
    ),
    "suspend is a word": (policy(suspend="yes"), "spec.suspend"),
    "deletion policy is another word": (policy(deletionPolicy="Keep"), "spec.deletionPolicy"),
    "deletion never times out": (policy(deletionTimeoutSeconds=0), "spec.deletionTimeoutSeconds"),
    "a grace below zero": (reachability(startupGraceSeconds=-1), f"{REACHABILITY}.startupGraceSeconds"),
    "a grace that is text": (reachability(startupGraceSeconds="1"), f"{REACHABILITY}.startupGraceSeconds"),
    "a grace with a fraction": (reachability(startupGraceSeconds=1.5), f"{REACHABILITY}.startupGraceSeconds"),
    "a tolerance of zero": (policy(detection={"tolerance": 0}), "spec.detection.tolerance"),
    "a tolerance beyond reason": (policy(detection={"tolerance": 21}), "spec.detection.tolerance"),
    "a tolerance with a fraction": (policy(detection={"tolerance": 1.5}), "spec.detection.tolerance"),
    "an objective of zero": (
        policy(detection={"objectives": {"produceMilliseconds": 0}}),
        "spec.detection.objectives.produceMilliseconds",
    ),
    "an objective of hours": (
        policy(detection={"objectives": {"fetchMilliseconds": 60001}}),
        "spec.detection.objectives.fetchMilliseconds",
    ),
    "a vantage twice": (reachability(vantages=["a", "b", "a"]), f"{REACHABILITY}.vantages"),
    "a vantage with a space": (reachability(vantages=["a b"]), f"{REACHABILITY}.vantages[0]"),
    "too many vantages": (reachability(vantages=[f"v{n}" for n in range(17)]), f"{REACHABILITY}.vantages"),
    "a listener without a name": (reachability(listeners=[""]), f"{REACHABILITY}.listeners[0]"),
    "one of two listeners without a name": (reachability(listeners=["A", ""]), f"{REACHABILITY}.listeners[1]"),
    "no listener at all": (reachability(listeners=[]), f"{REACHABILITY}.listeners"),
    "a listener twice": (reachability(listeners=["A", "A"]), f"{REACHABILITY}.listeners"),
    "nine listeners": (reachability(listeners=[f"L{n}" for n in range(9)]), f"{REACHABILITY}.listeners"),
    "a threshold of the disk": (
        policy(detection={"storageLatency": {"thresholdMilliseconds": 80}}),
        "spec.detection.storageLatency.thresholdMilliseconds",
    ),
    "a cap of zero": (policy(demotion={"maxBrokers": 0}), "spec.demotion.maxBrokers"),
    "a cap below zero": (policy(demotion={"maxBrokers": -1}), "spec.demotion.maxBrokers"),
    "a cap of half": (policy(demotion={"maxBrokers": "50%"}), "spec.demotion.maxBrokers"),
    "a cap of zero percent": (policy(demotion={"maxBrokers": "0%"}), "spec.demotion.maxBrokers"),
    "a number that is text": (policy(demotion={"maxBrokers": "2"}), "spec.demotion.maxBrokers"),
    "waves that do not rise": (policy(promotion={"waves": {"steps": [50, 10, 100]}}), "spec.promotion.waves.steps"),
    "waves that do not grow": (policy(promotion={"waves": {"steps": [10, 10, 100]}}), "spec.promotion.waves.steps"),
    "waves that do not reach all": (policy(promotion={"waves": {"steps": [10, 50]}}), "spec.promotion.waves.steps"),
    "waves of nothing": (policy(promotion={"waves": {"steps": [0, 100]}}), "spec.promotion.waves.steps"),
    "waves of more than all": (policy(promotion={"waves": {"steps": [50, 101]}}), "spec.promotion.waves.steps"),
    "no waves at all": (policy(promotion={"waves": {"steps": []}}), "spec.promotion.waves.steps"),
    "elections every second": (policy(election={"intervalSeconds": 1}), "spec.election.intervalSeconds"),
    "elections at a negative interval": (policy(election={"intervalSeconds": -5}), "spec.election.intervalSeconds"),
    "a pause before the last wave": (
        policy(promotion={"waves": {"pauseSeconds": -1}}),
        "spec.promotion.waves.pauseSeconds",
    ),
    "promotion by magic": (policy(promotion={"mode": "Magic"}), "spec.promotion.mode"),
    "a negative stabilization": (
        policy(promotion={"stabilizationSeconds": -1}),
        "spec.promotion.stabilizationSeconds",
    ),
    "a batch that the controller refuses": (policy(election={"batchSize": 10001}), "spec.election.batchSize"),
    "a name that is too long for a label": (policy("m" * 64), "metadata.name"),
    "pods without labels": (policy(maintenance={"pods": {}}), "spec.maintenance.pods.selector"),
    "pods with a label without a value": (
        policy(maintenance={"pods": {"selector": "app"}}),
        "spec.maintenance.pods.selector",
    ),
    "pods by an expression": (
        policy(maintenance={"pods": {"selector": "app in (kafka)"}}),
        "spec.maintenance.pods.selector",
    ),
    "a negative first broker": (
        policy(maintenance={"pods": {"selector": "app=kafka", "firstBrokerId": -1}}),
        "spec.maintenance.pods.firstBrokerId",
    ),
    "a placement without racks": (policy(placement={}), "spec.placement.racks"),
    "a rack twice": (policy(placement={"racks": ["a", "a"]}), "spec.placement.racks"),
    "racks and weights": (
        policy(placement={"racks": ["a"], "weights": [{"rack": "b", "weight": 1}]}),
        "spec.placement.weights",
    ),
    "a weight twice": (
        policy(placement={"weights": [{"rack": "b", "weight": 1}, {"rack": "b", "weight": 2}]}),
        "spec.placement.weights",
    ),
    "a weight of nothing": (
        policy(placement={"weights": [{"rack": "b", "weight": 0}]}),
        "spec.placement.weights[0].weight",
    ),
    "a placement rule without a rack": (
        policy(placement={"topics": [{"pattern": "orders"}]}),
        "spec.placement.topics[0].racks",
    ),
    "a placement rule for every topic": (
        policy(placement={"topics": [{"pattern": "**", "racks": ["a"]}]}),
        "spec.placement.topics[0].pattern",
    ),
    "a placement rule twice": (
        policy(placement={"topics": [{"pattern": "x", "racks": ["a"]}, {"pattern": "x", "racks": ["b"]}]}),
        "spec.placement.topics",
    ),
    "a capacity without a limit": (policy(demotion={"capacity": {}}), "spec.demotion.capacity.maxLeaders"),
}

BAD_REBALANCES: dict[str, tuple[Body, str]] = {
    "no policy": (without(rebalance(), "spec", "policy"), "spec.policy"),
    "a policy without a name": (rebalance(policy=""), "spec.policy"),
    "a store that is an address": (rebalance(store="s3://loads/main"), "spec.store"),
    "a profile that is an image": (rebalance(profile="registry.example.com/any:1"), "spec.profile"),
    "a history of no days": (rebalance(historyDays=0), "spec.historyDays"),
    "a schedule of four fields": (rebalance(schedule="0 4 * *"), "spec.schedule"),
    "a schedule in words": (rebalance(schedule="@daily"), "spec.schedule"),
    "an unknown approval": (rebalance(approval="Never"), "spec.approval"),
    "traffic of another word": (rebalance(objective={"traffic": "Some"}), "spec.objective.traffic"),
    "a capacity of nothing": (
        rebalance(objective={"capacities": [{"brokerId": 1, "capacity": 0}]}),
        "spec.objective.capacities[0].capacity",
    ),
    "a capacity twice": (
        rebalance(objective={"capacities": [{"brokerId": 1, "capacity": 1}, {"brokerId": 1, "capacity": 2}]}),
        "spec.objective.capacities",
    ),
    "a preferred rack twice": (
        rebalance(objective={"preferredRacks": ["a", "a"]}),
        "spec.objective.preferredRacks",
    ),
    "no move at all": (rebalance(objective={"maxMoves": 0}), "spec.objective.maxMoves"),
    "a topic's name with a slash": (
        rebalance(objective={"excludedTopics": ["a/b"]}),
        "spec.objective.excludedTopics[0]",
    ),
    "a wave of nothing": (rebalance(waves={"partitions": 0}), "spec.waves.partitions"),
    "a plan that is stale at once": (rebalance(validSeconds=1), "spec.validSeconds"),
}

BAD_HEALTHS: dict[str, tuple[Body, str]] = {
    "a negative broker": (health(-1, name="main-1"), "spec.brokerId"),
    "a broker in words": (health("one", name="main-1"), "spec.brokerId"),
    "no broker": (without(health(), "spec", "brokerId"), "spec.brokerId"),
    "no policy": (without(health(), "spec", "policyRef"), "spec.policyRef"),
    "a name of another broker": (health(1, name="main-2"), "metadata.name"),
    "a name without a broker": (health(1, name="main"), "metadata.name"),
    "an override without a reason": (health(override={"state": "Demoted"}), "spec.override.reason"),
    "an override with an empty reason": (health(override={"state": "Demoted", "reason": ""}), "spec.override.reason"),
    "an override with an endless reason": (
        health(override={"state": "Demoted", "reason": "x" * 513}),
        "spec.override.reason",
    ),
    "an override to an unknown state": (health(override={"state": "Gone", "reason": "x"}), "spec.override.state"),
    "an override until sometime": (
        health(override={"state": "Demoted", "reason": "x", "until": "tomorrow"}),
        "spec.override.until",
    ),
    "an override until a number": (
        health(override={"state": "Demoted", "reason": "x", "until": "1767225600"}),
        "spec.override.until",
    ),
    "an override that leads in maintenance": (health(override={**DRAIN, "state": "Promoted"}), "spec.override.state"),
    "maintenance without an end": (health(override={**BY_HAND, "purpose": "Maintenance"}), "spec.override.until"),
    "an unknown purpose": (health(override={**DRAIN, "purpose": "Holiday"}), "spec.override.purpose"),
    "accepted without a purpose": (
        health(override={**BY_HAND, "acceptUnavailableWrites": True}),
        "spec.override.acceptUnavailableWrites",
    ),
}

UNKNOWN_FIELDS: dict[str, tuple[Body, str]] = {
    "at the top of a policy": (policy(racks=["a"]), "racks"),
    "deep in a policy": (reachability(periodMilliseconds=5), "periodMilliseconds"),
    "misspelt": (policy(kafka=kafka(bootstrapServer="x:1")), "bootstrapServer"),
    "in a policy that still rebalances": (policy(rebalance={"store": "default"}), "rebalance"),
    "in a LeaderRebalance": (rebalance(racks=["a"]), "racks"),
    "in a BrokerHealth": (health(overide={"state": "Demoted"}), "overide"),
    "in an override": (health(override={"state": "Demoted", "reason": "x", "for": "1h"}), "for"),
}
