"""``spec.detection``: thresholds for each signal type. Defaults and bounds come from ``core.settings.detection``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.base_model import AS_SET, DISTINCT, Matching, Model, as_map, distinct_by
from bellwether.api.v1alpha1.core_models import SettingsModel
from bellwether.api.v1alpha1.spec.credentials_spec import ResourceName
from bellwether.api.v1alpha1.spec.kafka_spec import HostPort
from bellwether.core.settings import detection, source_settings

_REACHABILITY = detection.Reachability()
LISTENER_LIMIT = 8
"""Each listener of each broker is asked every second, from every vantage."""

Listener = Annotated[
    str,
    Matching("^[A-Za-z0-9_.-]+$", "must be the name of a listener, as in advertised.listeners, such as EXTERNAL", 64),
]
Vantage = Annotated[
    str,
    Matching(
        "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        "must consist of letters, digits, '-', '_' and '.', such as eu-west-1a",
        63,
    ),
]
Selector = Annotated[
    str,
    Matching(
        r'^[a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"[^"]*"(,[a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"[^"]*")*$',
        'must be label matchers with values in double quotes, such as namespace="kafka",strimzi_io_cluster="main"',
        512,
    ),
]


class ExternalReachability(SettingsModel[detection.Reachability]):
    """Whether external clients can reach each broker at the addresses that its external listeners advertise."""

    listeners: Annotated[
        tuple[Listener, ...], Field(min_length=1, max_length=LISTENER_LIMIT, json_schema_extra=AS_SET), DISTINCT
    ] = _REACHABILITY.listeners
    """Names of the listeners that clients use, as in advertised.listeners of the brokers. Each is probed and judged for
    itself.
    """
    bootstrap_servers: Annotated[tuple[HostPort, ...], Field(max_length=32, json_schema_extra=AS_SET), DISTINCT] = (
        _REACHABILITY.bootstrap_servers
    )
    """Initial addresses of the probers, as host:port on the first of listeners. If empty, the advertised addresses are
    read from the cluster that spec.kafka connects to.
    """
    vantages: Annotated[tuple[Vantage, ...], Field(max_length=16, json_schema_extra=AS_SET), DISTINCT] = (
        _REACHABILITY.vantages
    )
    """Names of the vantages. A majority of them, and at least two where two exist, must agree that a broker is
    unreachable. If empty, every vantage that has reported counts.
    """

    moved: ClassVar[Mapping[str, str]] = {"listener": "has become listeners: set it to a list of names"}


class Canary(SettingsModel[detection.Canary]):
    """Whether clients at the vantages of externalReachability can produce to each broker and fetch from it in time."""

    topic: Annotated[
        str, Matching("^[a-zA-Z0-9._-]+$", "must be the name of a topic, such as bellwether-canary", 249)
    ] = detection.CANARY_TOPIC
    """Topic with one partition for each broker, whose only replica is on that broker. It must exist: Bellwether does
    not create it.
    """


class SignalSourceRef(Model):
    """A SignalSource of the policy's namespace."""

    name: ResourceName
    """Name of the SignalSource."""
    selector: Selector | None = None
    """Label matchers that limit the presets of the source to the brokers of this cluster, such as
    strimzi_io_cluster="main", in addition to those of its rules. Queries are used as they are.
    """


def _moved(spec: str) -> str:
    """Where a source has moved, with the new form."""
    kind = "{apiVersion: bellwether.dev/v1alpha1, kind: SignalSource, metadata: {name: NAME}, spec: {%s}}"
    return f"has become a SignalSource: write {kind % spec} in this namespace, and signalSources: [{{name: NAME}}] here"


class Detection(SettingsModel[detection.Detection]):
    """Signals by which brokers are judged, and the harm to clients at which a broker is demoted."""

    external_reachability: ExternalReachability = Field(default_factory=ExternalReachability)
    canary: Canary = Field(default_factory=Canary)
    signal_sources: Annotated[tuple[SignalSourceRef, ...], distinct_by("name")] = Field(
        default=(), max_length=16, json_schema_extra=as_map("name")
    )
    """SignalSources of the policy's namespace: queries to Prometheus, and plug-ins."""

    moved: ClassVar[Mapping[str, str]] = {
        "alertmanager": "has become the preset FiringAlerts: name the alerts in the selector of a rule of a"
        " SignalSource with prometheus, and that source in signalSources",
        "prometheus": _moved("prometheus: THESE FIELDS"),
        "plugins": _moved("plugin: ONE OF THESE ENTRIES"),
    }

    def to_core(
        self,
        rules: tuple[source_settings.PrometheusRule, ...] = (),
        plugins: tuple[source_settings.Plugin, ...] = (),
    ) -> detection.Detection:
        """Convert to the settings of the core, with the rules and plug-ins of the policy's sources."""
        own = {n: v.to_core() if isinstance(v, SettingsModel) else v for n, v in self if n != "signal_sources"}
        return detection.Detection(**own, prometheus_rules=rules, plugins=plugins)
