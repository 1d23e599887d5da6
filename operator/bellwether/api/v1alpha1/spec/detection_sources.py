"""``spec.detection`` sources from elsewhere: Prometheus queries, Alertmanager's webhook, plug-in probers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.base_model import AS_SET, DISTINCT, Matching, Model, Rule, as_map, integer
from bellwether.api.v1alpha1.spec.kafka_spec import SecretKeyRef
from bellwether.api.v1alpha1.spec.promql import Scope
from bellwether.api.v1alpha1.spec.query_presets import BY_NAME, PRESETS
from bellwether.core.settings import detection
from bellwether.core.signals import SignalType

_PROMETHEUS = detection.Prometheus()
_RULE = detection.PrometheusRule(name="", query="", threshold=0)
_ALERTMANAGER = detection.Alertmanager()
_PLUGIN = detection.Plugin(type="")

_ON_FAILING = "Demote makes a failing broker Sick, Suspect only names it."
_BROKER_LABEL = "Label that carries the broker's id: a number, or a name that ends in one, such as main-kafka-2."

SourceName = Annotated[
    str,
    Matching("^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", "must consist of letters, digits, '-', '_' and '.'", 63),
]
LabelName = Annotated[str, Matching("^[a-zA-Z_][a-zA-Z0-9_]*$", "must be the name of a Prometheus label", 128)]
KindName = Annotated[str, Matching("^[A-Z][A-Za-z0-9]*$", "must be the name of a kind of signal in UpperCamelCase", 63)]
Decimal = Annotated[
    str, Matching(r"^-?[0-9]+(\.[0-9]+)?$", "must be a decimal number in quotes, such as '0.5' or '200'", 20)
]
Url = Annotated[
    str,
    Matching(
        r"^https?://[^\s@]+$", "must be an http or https URL without user or password, such as http://prom:9090", 512
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


def _preset_rules() -> tuple[Rule, ...]:
    """What a preset demands of the rule that names it: that the policy says openly what it will be judged by."""

    def named(wanted: Iterable[str]) -> str:
        return f"has(self.preset) && self.preset in [{', '.join(repr(name) for name in wanted)}]"

    known = [preset.name for preset in PRESETS]
    leading = [preset.name for preset in PRESETS if preset.leaders_only]
    rules = [
        Rule(
            cel=f"!has(self.preset) || self.preset == '' || ({named(known)})",
            message=f"names no ready-made query; there are {', '.join(known)}",
            holds=lambda rule: rule.preset in ("", *BY_NAME),
            field="preset",
        ),
        Rule(
            cel=f"!({named(leading)}) || self.leadersOnly",
            message=f"must be true for {' and '.join(leading)}, which say nothing of a broker that leads nothing",
            holds=lambda rule: rule.preset not in leading or rule.leaders_only,
            field="leadersOnly",
        ),
        Rule(
            cel="!has(self.selector) || (has(self.preset) && self.preset != '')",
            message="goes with preset alone: write the matchers into your own query",
            holds=lambda rule: rule.selector is None or bool(rule.preset),
            field="selector",
        ),
    ]
    for comparison in detection.Comparison:
        these = [preset.name for preset in PRESETS if preset.comparison is comparison]
        rules.append(
            Rule(
                cel=f"!({named(these)}) || self.comparison == '{comparison}'",
                message=f"must be {comparison} for {', '.join(these)}",
                holds=_compared(frozenset(these), comparison),
                field="comparison",
            )
        )
    return tuple(rules)


def _compared(presets: frozenset[str], comparison: detection.Comparison) -> Callable[[Any], bool]:
    return lambda rule: rule.preset not in presets or rule.comparison is comparison


class PrometheusRule(Model):
    """One query that yields a value for each broker, and when that value is bad."""

    name: Annotated[SourceName, Field(description="Name of the rule; the source of its signals.")]
    query: str = Field(
        default="", max_length=4096, description="PromQL; every series needs the broker label. Absent: that of preset."
    )
    preset: str = Field(
        default="",
        max_length=63,
        description="Name of a ready-made query, as listed by 'bellwether probe prometheus --presets'.",
    )
    selector: Selector | None = Field(
        default=None,
        description="Label matchers that narrow a preset to this cluster's brokers, such as"
        ' namespace="kafka",strimzi_io_cluster="main". Needed where one Prometheus watches several clusters.',
    )
    threshold: Annotated[
        Decimal,
        Field(
            description="The value beyond which a broker fails, in the query's own unit. Quoted: API"
            " conventions have no floating point numbers."
        ),
    ]
    comparison: detection.Comparison = Field(
        default=_RULE.comparison, description="Whether values Above or Below the threshold are bad."
    )
    peer_ratio: int = integer(
        _RULE.peer_ratio,
        0,
        1000,
        "Ask besides that the value be so many times the median of the other brokers' (Below: so many times less)."
        " 0 asks for nothing.",
    )
    broker_label: Annotated[LabelName, Field(description=_BROKER_LABEL)] = _RULE.broker_label
    leaders_only: bool = Field(
        default=_RULE.leaders_only,
        strict=True,
        description="The value means something only while the broker leads, as produce latency does: a demoted broker"
        " is not judged by it.",
    )
    failure_threshold: int = integer(_RULE.failure_threshold, 1, 100, "Bad values in a row that make Failing.")
    success_threshold: int = integer(_RULE.success_threshold, 1, 100, "Good values in a row that make Passing again.")
    on_failing: detection.OnFailing = Field(default=_RULE.on_failing, description=_ON_FAILING)

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="(has(self.query) && self.query != '') != (has(self.preset) && self.preset != '')",
            message="needs either query or preset, and not both",
            holds=lambda rule: bool(rule.query) != bool(rule.preset),
            field="query",
        ),
        *_preset_rules(),
    )

    def to_core(self) -> detection.PrometheusRule:
        """The same as a value of the core, with the preset's query filled in."""
        said = dict(self)
        preset, selector = said.pop("preset"), said.pop("selector")
        if preset:
            said["query"] = BY_NAME[preset].query(Scope(self.broker_label, selector or ""))
        return detection.PrometheusRule(**{**said, "threshold": float(self.threshold)})


class Prometheus(Model):
    """Which Prometheus is asked, and what for."""

    url: Annotated[Url, Field(description="Base URL of the Prometheus HTTP API, such as http://prometheus:9090.")]
    bearer_token_secret_ref: SecretKeyRef | None = Field(
        default=None, description="A token to authenticate with; needs an https URL."
    )
    ca_secret_ref: SecretKeyRef | None = Field(
        default=None, description="PEM certificates of the authority that signs the server's. Absent: the system's."
    )
    period_seconds: int = integer(_PROMETHEUS.period_seconds, 1, 3600, "How often each query is asked.")
    timeout_seconds: int = integer(_PROMETHEUS.timeout_seconds, 1, 300, "How long one query may take.")
    stale_after_seconds: int = integer(
        _PROMETHEUS.stale_after_seconds, 2, 7200, "Silence of the prober after which its word counts for nothing."
    )
    rules_: tuple[PrometheusRule, ...] = Field(
        alias="rules", min_length=1, max_length=32, description="The queries.", json_schema_extra=as_map("name")
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.staleAfterSeconds > self.periodSeconds + self.timeoutSeconds",
            message="must exceed periodSeconds + timeoutSeconds, or evidence goes stale between two queries: raise it",
            holds=lambda p: p.stale_after_seconds > p.period_seconds + p.timeout_seconds,
            field="staleAfterSeconds",
        ),
        Rule(
            cel="!has(self.bearerTokenSecretRef) || self.url.startsWith('https://')",
            message="sends a token without TLS: use an https URL, or remove bearerTokenSecretRef",
            holds=lambda p: p.bearer_token_secret_ref is None or p.url.startswith("https://"),
            field="url",
        ),
    )

    def to_core(self) -> detection.Prometheus:
        """The same as a value of the core."""
        return detection.Prometheus(
            url=self.url,
            period_seconds=self.period_seconds,
            timeout_seconds=self.timeout_seconds,
            stale_after_seconds=self.stale_after_seconds,
            rules=tuple(rule.to_core() for rule in self.rules_),
        )


class Alertmanager(Model):
    """Which alerts count. The webhook itself is started by 'bellwether probe alertmanager'."""

    alerts: Annotated[
        tuple[SourceName, ...],
        Field(
            min_length=1,
            max_length=32,
            description="Names of the alerts that count (label alertname); all others are passed over.",
            json_schema_extra=AS_SET,
        ),
        DISTINCT,
    ]
    broker_label: Annotated[LabelName, Field(description=_BROKER_LABEL)] = _ALERTMANAGER.broker_label
    stale_after_seconds: int = integer(
        _ALERTMANAGER.stale_after_seconds, 2, 7200, "Silence of the webhook after which its word counts for nothing."
    )
    on_failing: detection.OnFailing = Field(default=_ALERTMANAGER.on_failing, description=_ON_FAILING)

    def to_core(self) -> detection.Alertmanager:
        """The same as a value of the core."""
        return detection.Alertmanager(**dict(self))


class Setting(Model):
    """One setting of a plugged-in prober."""

    name: str = Field(min_length=1, max_length=63, description="Name of the setting.")
    value: str = Field(max_length=1024, description="Its value.")


class Plugin(Model):
    """A kind of signal that somebody else's prober measures."""

    type: Annotated[KindName, Field(description="Name of the kind, as its entry point says.")]
    sources: int = integer(_PLUGIN.sources, 1, 16, "How many sources must agree that a broker fails.")
    period_seconds: int = integer(_PLUGIN.period_seconds, 1, 3600, "How often it is measured.")
    timeout_seconds: int = integer(_PLUGIN.timeout_seconds, 1, 300, "How long one measurement may take.")
    failure_threshold: int = integer(_PLUGIN.failure_threshold, 1, 100, "Failures in a row that make Failing.")
    success_threshold: int = integer(_PLUGIN.success_threshold, 1, 100, "Successes in a row that make Passing again.")
    stale_after_seconds: int = integer(
        _PLUGIN.stale_after_seconds, 2, 7200, "Silence of the prober after which its word counts for nothing."
    )
    leaders_only: bool = Field(
        default=_PLUGIN.leaders_only, strict=True, description="It means something only while the broker leads."
    )
    on_failing: detection.OnFailing = Field(default=_PLUGIN.on_failing, description=_ON_FAILING)
    settings: tuple[Setting, ...] = Field(
        default=(),
        max_length=32,
        description="Settings of its own, handed to the prober as they are.",
        json_schema_extra=as_map("name"),
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!(self.type in ['ExternalReachability', 'SelfReachability', 'StorageLatency', 'ReplicationLag',"
            " 'Prometheus', 'Alertmanager'])",
            message="is a kind of Bellwether's own: name the plugged-in kind",
            holds=lambda plugin: plugin.type not in set(SignalType),
            field="type",
        ),
        Rule(
            cel="self.staleAfterSeconds > self.periodSeconds + self.timeoutSeconds",
            message="must exceed periodSeconds + timeoutSeconds, or evidence goes stale between two looks: raise it",
            holds=lambda p: p.stale_after_seconds > p.period_seconds + p.timeout_seconds,
            field="staleAfterSeconds",
        ),
    )

    def to_core(self) -> detection.Plugin:
        """The same as a value of the core."""
        return detection.Plugin(**{**dict(self), "settings": tuple(sorted((s.name, s.value) for s in self.settings))})
