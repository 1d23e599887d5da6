"""Cases of ``operator.yaml``."""

from __future__ import annotations

from testkit.alerts.cases.alert_case import Case, of_policy, series

OURS = (of_policy(),)
A, B = {"instance": "operator-a", "job": "bellwether"}, {"instance": "operator-b", "job": "bellwether"}
NOBODY = {"namespace": "", "policy": ""}


def build(job: str = "bellwether", instance: str = "operator-a") -> str:
    return series("build_info", NOBODY, component="operator", instance=instance, job=job)


def kubernetes(verb: str, outcome: str) -> str:
    return series("kubernetes_requests_total", NOBODY, A, verb=verb, resource="brokerhealths", outcome=outcome)


def kafka(request: str, outcome: str) -> str:
    return series("kafka_requests_total", A, request=request, outcome=outcome)


def asks(result: str) -> str:
    return series("probe_requests_total", broker="1", path="external", source="zone-a", result=result)


def trouble(reason: str) -> str:
    return series("policy_error", A, reason=reason)


CASES = (
    Case(
        "BellwetherOperatorDown",
        "it was there, and its policy is named",
        "5m",
        {build(): "1x4 stale", series("operator_leading", A): "1x4 stale"},
        (of_policy(job="bellwether"),),
    ),
    Case("BellwetherOperatorDown", "none was ever there", "5m", {"up": "1x40"}, ({"component": "operator"},)),
    Case(
        "BellwetherOperatorDown",
        "another installation's is there",
        "5m",
        {build(): "1x4 stale", series("operator_leading", A): "1x4 stale", build("other"): "1x40"},
        (of_policy(job="bellwether"),),
    ),
    Case(
        "BellwetherOperatorDown",
        "a rolling upgrade: a minute without",
        "5m",
        {
            build(): "1x4 stale",
            series("operator_leading", A): "1x4 stale",
            build(instance="operator-b"): "_x9 1x40",
            series("operator_leading", B): "_x9 1x40",
        },
    ),
    Case(
        "BellwetherOperatorDown",
        "a policy was deleted",
        "5m",
        {build(): "1x40", series("operator_leading", A): "1x4 stale"},
    ),
    Case(
        "BellwetherNoActiveOperator",
        "both stand by",
        "3m",
        {series("operator_leading", A): "0x20", series("operator_leading", B): "0x20"},
        OURS,
    ),
    Case(
        "BellwetherNoActiveOperator",
        "a hand-over takes half a minute",
        "4m",
        {series("operator_leading", A): "1x4 0x20", series("operator_leading", B): "0x6 1x20"},
    ),
    Case(
        "BellwetherNoActiveOperator",
        "another policy has the cluster: that has an alert of its own",
        "4m",
        {series("operator_leading", A): "0x20", trouble("ClusterClaimed"): "1x20"},
    ),
    Case(
        "BellwetherReconcileStuck",
        "since 15 s",
        "4m",
        {series("reconcile_start_timestamp_seconds", A): "0 15x40"},
        OURS,
    ),
    Case(
        "BellwetherReconcileStuck",
        "one turn after the other",
        "4m",
        {series("reconcile_start_timestamp_seconds", A): "0 15 30 0 60 75 75 0 120 0 0 165 180 195 0 225 240"},
    ),
    Case(
        "BellwetherReconcileFailing",
        "none succeeds any more",
        "10m",
        {
            series("reconcile_errors_total", A, kind="Transient"): "0+3x50",
            series("reconcile_last_success_timestamp_seconds", A): "0 15x50",
        },
        OURS,
    ),
    Case(
        "BellwetherReconcileFailing",
        "none ever succeeded",
        "10m",
        {series("reconcile_errors_total", A, kind="Terminal"): "0+3x50"},
        OURS,
    ),
    Case(
        "BellwetherReconcileFailing",
        "who stands by has trouble, who leads has none",
        "10m",
        {
            series("reconcile_errors_total", A, kind="Transient"): "0+3x50",
            series("reconcile_last_success_timestamp_seconds", B): "0+15x50",
        },
    ),
    Case(
        "BellwetherReconcileFailing",
        "a minute's trouble while brokers restart",
        "10m",
        {
            series("reconcile_errors_total", A, kind="Transient"): "0x20 0+3x4 12x50",
            series("reconcile_last_success_timestamp_seconds", A): "0+15x20 300x4 375+15x50",
        },
    ),
    Case(
        "BellwetherKubernetesWritesFailing",
        "no write is taken",
        "9m",
        {kubernetes("patch", "unavailable"): "0+5x50", kubernetes("get", "ok"): "0+50x50"},
        (A,),
    ),
    Case(
        "BellwetherKubernetesWritesFailing",
        "conflicts, which are no trouble",
        "9m",
        {kubernetes("patch", "conflict"): "0+5x50", kubernetes("update", "ok"): "0+1x50"},
    ),
    Case(
        "BellwetherKubernetesWritesFailing",
        "the API server was away for two minutes",
        "9m",
        {kubernetes("patch", "unavailable"): "0x8 0+5x8 40x50", kubernetes("update", "ok"): "0+7x8 56x8 56+7x50"},
    ),
    Case(
        "BellwetherKafkaRequestsFailing",
        "no one answers",
        "8m",
        {kafka("Open", "Connect"): "0+5x50", kafka("Metadata", "ok"): "3x50"},
        OURS,
    ),
    Case(
        "BellwetherKafkaRequestsFailing",
        "one broker of three does not answer",
        "8m",
        {kafka("Open", "Connect"): "0+5x50", kafka("Open", "ok"): "0+10x50", kafka("Metadata", "ok"): "0+10x50"},
    ),
    Case(
        "BellwetherKafkaAuthenticationFailing",
        "the operator's certificate has expired",
        "6m",
        {kafka("Open", "Tls"): "0+5x50", kafka("Open", "ok"): "50x50"},
        OURS,
    ),
    Case(
        "BellwetherKafkaAuthenticationFailing", "the probers' password is wrong", "6m", {asks("Sasl"): "0+5x50"}, OURS
    ),
    Case(
        "BellwetherKafkaAuthenticationFailing",
        "brokers take connections and say nothing",
        "6m",
        {kafka("Open", "Timeout"): "0+5x50", kafka("Open", "ok"): "50x50", asks("Timeout"): "0+9x50"},
    ),
    Case(
        "BellwetherKafkaRequestsFailing",
        "brokers take connections and say nothing",
        "9m",
        {kafka("Open", "Timeout"): "0+5x50", kafka("Open", "ok"): "50x50"},
        OURS,
    ),
    Case(
        "BellwetherKafkaAuthenticationFailing",
        "a broker restarts in the middle of handshakes",
        "6m",
        {kafka("Open", "Tls"): "0x8 1x2 2x40", kafka("Open", "ok"): "0+5x50", asks("Connect"): "0+9x50"},
    ),
    Case(
        "BellwetherCertificateExpiringSoon",
        "in five days",
        "20m",
        {series("kafka_certificate_expiry_timestamp_seconds", A, certificate="own"): "432000x100"},
        (of_policy(certificate="own"),),
    ),
    Case(
        "BellwetherCertificateExpiringSoon",
        "renewed in time: brokers restart one after the other",
        "20m",
        {
            series("kafka_certificate_expiry_timestamp_seconds", A, certificate="authority"): "31536000x100",
            series("kafka_certificate_expiry_timestamp_seconds", A, certificate="broker"): "432000x40 31536000x60",
        },
    ),
    Case("BellwetherClusterChanged", "for two minutes", "2m", {trouble("ClusterChanged"): "1x20"}, OURS),
    Case("BellwetherClusterChanged", "it only does not answer", "2m", {trouble("ClusterUnreachable"): "1x20"}),
    Case("BellwetherClusterClaimed", "for three minutes", "3m", {trouble("ClusterClaimed"): "1x20"}, OURS),
    Case(
        "BellwetherClusterClaimed",
        "a policy was replaced by one of another name, which had to wait",
        "3m",
        {trouble("ClusterClaimed"): "1x4 stale"},
    ),
    Case("BellwetherPolicyInvalid", "for three minutes", "3m", {trouble("InvalidPolicy"): "1x20"}, OURS),
    Case("BellwetherPolicyInvalid", "repaired at once", "3m", {trouble("InvalidPolicy"): "1x4 stale"}),
)
