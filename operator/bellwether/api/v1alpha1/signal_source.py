"""SignalSource: a Prometheus server with its rules, or a plug-in with its settings, for every policy that names it.

Policies name it in ``spec.detection.signalSources``, in their own namespace; the operator, the probers
and the CLI read these names by ``choose``. A prober writes the status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from bellwether.api.v1alpha1.base_model import (
    InvalidObject,
    Matching,
    Model,
    Object,
    Reported,
    Rule,
    as_map,
    distinct_by,
    integer,
)
from bellwether.api.v1alpha1.core_models import SettingsModel
from bellwether.api.v1alpha1.spec.credentials_spec import (
    Header,
    HttpProxy,
    IdentityName,
    ResourceName,
    workload_identity,
)
from bellwether.api.v1alpha1.spec.detection_spec import Selector, SignalSourceRef
from bellwether.api.v1alpha1.spec.kafka_spec import authorities_of
from bellwether.api.v1alpha1.spec.query_presets import ALERTS_NAMED, BY_NAME, PRESETS, Scope, alerts_of
from bellwether.api.v1alpha1.status.status_conditions import Conditions
from bellwether.api.v1alpha1.validation_errors import nearest
from bellwether.core.settings import source_settings
from bellwether.core.signals import SignalType
from bellwether.destinations import HOST, PORT

RULE_LIMIT = 32
"""Rules of one policy, of all its sources together: each is an entry of every BrokerHealth."""

_RULE = source_settings.PrometheusRule(name="", query="", threshold=0)

SourceName = Annotated[
    str,
    Matching("^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", "must consist of letters, digits, '-', '_' and '.'", 63),
]
LabelName = Annotated[str, Matching("^[a-zA-Z_][a-zA-Z0-9_]*$", "must be the name of a Prometheus label", 128)]
KindName = Annotated[
    str, Matching("^[A-Z][A-Za-z0-9]*$", "must be a signal type in UpperCamelCase, such as DiskQueue", 63)
]
Decimal = Annotated[
    str, Matching(r"^-?[0-9]+(\.[0-9]+)?$", "must be a decimal number in quotes, such as '0.5' or '200'", 20)
]
Url = Annotated[
    str,
    Matching(
        rf"^https?://{HOST}(:{PORT})?(/[^\s?#\\]*)?$",
        "must be an http or https URL of host, port and path, such as http://prom:9090",
        512,
    ),
]


def _preset_rules() -> tuple[Rule, ...]:
    """Rules for a rule with a preset: it must state what the preset needs."""

    def named(names: Iterable[str]) -> str:
        return f"has(self.preset) && self.preset in [{', '.join(repr(name) for name in names)}]"

    known = [preset.name for preset in PRESETS]
    leading = [preset.name for preset in PRESETS if preset.leaders_only]
    alerting = [preset.name for preset in PRESETS if preset.selects_alerts]
    rules = [
        Rule(
            cel=f"!has(self.preset) || self.preset == '' || ({named(known)})",
            message=f"is not a preset: use one of {', '.join(known)}",
            holds=lambda rule: rule.preset in ("", *BY_NAME),
            field="preset",
        ),
        Rule(
            cel=f"!({named(leading)}) || self.leadersOnly",
            message=f"must be true for {' and '.join(leading)}: a broker without leaders has no meaningful value",
            holds=lambda rule: rule.preset not in leading or rule.leaders_only,
            field="leadersOnly",
        ),
        Rule(
            cel="!has(self.selector) || (has(self.preset) && self.preset != '')",
            message="requires preset: write the matchers into query instead",
            holds=lambda rule: rule.selector is None or bool(rule.preset),
            field="selector",
        ),
        Rule(
            # Of two brokers with one id only one may have an alert: nothing would show that it is of another cluster.
            cel=f"!({named(alerting)}) || (has(self.selector) && self.selector.matches({ALERTS_NAMED!r})"
            " && self.selector.contains('\",'))",
            message=f"must name alerts and this Kafka cluster for {' and '.join(alerting)}, such as"
            ' alertname=~"DiskFailing|NodeDown",namespace="kafka"',
            holds=lambda rule: (
                rule.preset not in alerting or bool(alerts_of(rule.selector or "") and '",' in rule.selector)
            ),
            field="selector",
        ),
    ]
    for comparison in source_settings.Comparison:
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


def _compared(presets: frozenset[str], comparison: source_settings.Comparison) -> Callable[[Any], bool]:
    return lambda rule: rule.preset not in presets or rule.comparison is comparison


class PrometheusRule(Model):
    """One query with a value per broker, and the threshold beyond which the value is bad."""

    name: SourceName
    """Name of the rule, and source of its signals."""
    query: str = Field(default="", max_length=4096)
    """PromQL query. Every series needs a label that identifies its broker. Required unless preset is set."""
    preset: str = Field(default="", max_length=63)
    """Name of a preset query, as listed by 'bellwether probe prometheus --presets'. Required unless query is set."""
    selector: Selector | None = None
    """Label matchers that limit a preset to some brokers, such as namespace="kafka",strimzi_io_cluster="main". If the
    Prometheus scrapes several Kafka clusters, this or the selector of the policy's reference must name the cluster.
    """
    threshold: Decimal
    """Threshold in the unit of the query. It is a string, because Kubernetes APIs do not use floating point numbers."""
    comparison: source_settings.Comparison = _RULE.comparison
    """Above: values above the threshold are bad. Below: values below it are."""
    peer_ratio: int = integer(_RULE.peer_ratio, 0, 1000)
    """A value is bad only if it is also at least this multiple of the median of the other brokers (Below: at most that
    fraction). 0 disables the comparison.
    """
    broker_label: LabelName = _RULE.broker_label
    """Label that identifies the broker: its value is a node id, a host name or an address that the broker advertises,
    or the name of its pod. A number at the end of a name counts only if every broker is matched exactly once by it.
    """
    leaders_only: bool = Field(default=_RULE.leaders_only, strict=True)
    """The value is meaningful only while the broker leads, such as produce latency: a demoted broker is not judged by
    it.
    """
    on_failing: source_settings.OnFailing = _RULE.on_failing
    """Effect of a failing signal: Demote makes the broker Sick, Suspect only reports it."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="(has(self.query) && self.query != '') != (has(self.preset) && self.preset != '')",
            message="exactly one of query and preset must be set",
            holds=lambda rule: bool(rule.query) != bool(rule.preset),
            field="query",
        ),
        *_preset_rules(),
    )

    def to_core(self, period_seconds: int, further: str = "") -> source_settings.PrometheusRule:
        """Convert to the settings of the core, with the query of the preset, which has ``further`` matchers."""
        values = dict(self)
        preset, own = values.pop("preset"), values.pop("selector") or ""
        if preset:
            values["query"] = BY_NAME[preset].query(Scope(self.broker_label, ",".join(filter(None, (own, further)))))
            values["shows_acks"] = BY_NAME[preset].shows_acks
            values["alerts"] = alerts_of(own) if BY_NAME[preset].selects_alerts else ()
        values |= {"threshold": float(self.threshold), "period_seconds": period_seconds}
        return source_settings.PrometheusRule(**values)


class Prometheus(Model):
    """Prometheus server and its queries."""

    url: Url | None = None
    """Base URL of the Prometheus HTTP API, such as http://prometheus:9090. Required unless workloadIdentity is set."""
    bearer_token_secret_name: ResourceName | None = None
    """Secret in the same namespace with a bearer token, under the key token. Requires an https URL. Excludes
    basicAuthSecretName; without either, requests are not authenticated.
    """
    basic_auth_secret_name: ResourceName | None = None
    """Secret in the same namespace with the keys username and password, as of type kubernetes.io/basic-auth. Requires
    an https URL.
    """
    workload_identity: IdentityName | None = workload_identity("The server and the bearer token")
    headers: Annotated[tuple[Header, ...], distinct_by("name")] = Field(
        default=(), max_length=16, json_schema_extra=as_map("name")
    )
    """Headers of each request, such as X-Scope-OrgID for the tenant of Mimir."""
    proxy: HttpProxy | None = None
    """HTTP proxy to reach the server by. If unset, none is used."""
    ca_secret_name: ResourceName | None = authorities_of("the server's certificate")
    period_seconds: int = integer(_RULE.period_seconds, 1, 3600)
    """Seconds between two runs of each query. An answer may take two thirds of it, and signals older than four periods
    are ignored.
    """
    rules_: Annotated[tuple[PrometheusRule, ...], distinct_by("name")] = Field(
        alias="rules", min_length=1, max_length=RULE_LIMIT, json_schema_extra=as_map("name")
    )
    """Queries and their thresholds."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.url) != has(self.workloadIdentity)",
            message="set exactly one of url and workloadIdentity, whose server the administrator has named",
            holds=lambda p: (p.url is not None) != (p.workload_identity is not None),
            field="url",
        ),
        Rule(
            cel="!has(self.workloadIdentity) || !(has(self.bearerTokenSecretName) || has(self.basicAuthSecretName)"
            " || has(self.headers) || has(self.proxy) || has(self.caSecretName))",
            message="excludes bearerTokenSecretName, basicAuthSecretName, headers, proxy and caSecretName: the"
            " administrator sets them with the identity",
            holds=lambda p: (
                p.workload_identity is None
                or not (
                    p.bearer_token_secret_name or p.basic_auth_secret_name or p.headers or p.proxy or p.ca_secret_name
                )
            ),
            field="workloadIdentity",
        ),
        Rule(
            cel="!(has(self.bearerTokenSecretName) || has(self.basicAuthSecretName)) || !has(self.url)"
            " || self.url.startsWith('https://')",
            message="must be an https URL, because credentials are set: change it, or remove bearerTokenSecretName"
            " and basicAuthSecretName",
            holds=lambda p: (
                not (p.bearer_token_secret_name or p.basic_auth_secret_name)
                or p.url is None
                or p.url.startswith("https://")
            ),
            field="url",
        ),
        Rule(
            cel="!(has(self.bearerTokenSecretName) && has(self.basicAuthSecretName))",
            message="excludes basicAuthSecretName: keep one",
            holds=lambda p: not (p.bearer_token_secret_name and p.basic_auth_secret_name),
            field="bearerTokenSecretName",
        ),
    )


class Setting(Model):
    """One setting of a plug-in."""

    name: str = Field(min_length=1, max_length=63)
    """Name of the setting."""
    value: str = Field(max_length=1024)
    """Value of the setting."""


class Plugin(SettingsModel[source_settings.Plugin]):
    """A signal type that a plug-in measures."""

    type: KindName
    """Signal type, as named by the plug-in's entry point."""
    settings: Annotated[tuple[Setting, ...], distinct_by("name")] = Field(
        default=(), max_length=32, json_schema_extra=as_map("name")
    )
    """Settings that are passed to the plug-in unchanged."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"!(self.type in {[str(kind) for kind in SignalType]})",
            message="is a built-in signal type: use the type of the plug-in",
            holds=lambda plugin: plugin.type not in set(SignalType),
            field="type",
        ),
    )

    def to_core(self) -> source_settings.Plugin:
        """Convert to the settings of the core."""
        return source_settings.Plugin(
            **{**dict(self), "settings": tuple(sorted((s.name, s.value) for s in self.settings))}
        )


class SignalSourceSpec(Model):
    """A Prometheus server with its rules, or a plug-in with its settings."""

    prometheus: Prometheus | None = None
    plugin: Plugin | None = None

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.prometheus) != has(self.plugin)",
            message="exactly one of prometheus and plugin must be set",
            holds=lambda spec: (spec.prometheus is None) != (spec.plugin is None),
            field="prometheus",
        ),
    )


class SignalSourceStatus(Reported):
    """Whether the source can be used, as its prober found."""

    conditions: Conditions = ()
    """Ready: a prober uses the source. False: the message has the rule or the field, and what to do."""


class SignalSource(Object):
    """Signals of a Prometheus server or of a plug-in, for every LeadershipPolicy of the namespace that names it."""

    kind: Literal["SignalSource"] = "SignalSource"
    spec: SignalSourceSpec
    status: SignalSourceStatus = Field(default_factory=SignalSourceStatus)


@dataclass(frozen=True, slots=True)
class UsedSource:
    """A source as one policy uses it: the rules of its Prometheus, or its plug-in."""

    source: SignalSource
    rules: tuple[source_settings.PrometheusRule, ...] = ()
    plugins: tuple[source_settings.Plugin, ...] = ()

    @classmethod
    def of(cls, ref: SignalSourceRef, body: Mapping[str, Any]) -> UsedSource:
        """The source that a policy names. Raises InvalidObject."""
        source = SignalSource.read(body)
        prometheus, plugin = source.spec.prometheus, source.spec.plugin
        if ref.selector and not (prometheus and any(rule.preset for rule in prometheus.rules_)):
            raise InvalidObject(f"SignalSource {ref.name} has no preset for a selector: remove selector")
        if prometheus is None:
            return cls(source, plugins=(plugin.to_core(),) if plugin is not None else ())
        period = prometheus.period_seconds
        return cls(source, rules=tuple(rule.to_core(period, ref.selector or "") for rule in prometheus.rules_))

    @property
    def names(self) -> tuple[str, ...]:
        """What no other source of the policy may have: it identifies the signals."""
        return (*(f"rule {one.name}" for one in self.rules), *(f"plug-in type {one.type}" for one in self.plugins))


@dataclass(frozen=True, slots=True)
class ChosenSources:
    """The sources that a policy uses, and by place in ``signalSources`` why it does not use others that it names."""

    used: tuple[UsedSource, ...] = ()
    problems: Mapping[int, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """The problems, for a person; empty without any."""
        return "; ".join(f"spec.detection.signalSources[{index}]: {text}" for index, text in self.problems.items())


def choose(refs: Iterable[SignalSourceRef], bodies: Iterable[Mapping[str, Any]]) -> ChosenSources:
    """What a policy names, from the SignalSources of its namespace."""
    there = {str(head.get("name")): body for body in bodies if isinstance(head := body.get("metadata"), Mapping)}
    used: list[UsedSource] = []
    problems: dict[int, str] = {}
    owners: dict[str, str] = {}
    for index, ref in enumerate(refs):
        try:
            if ref.name not in there:
                shown = f"no SignalSource {ref.name} exists{nearest(ref.name, there)}"
                raise InvalidObject(f"{shown}: create it; the namespace has {', '.join(sorted(there)[:10]) or 'none'}")
            one = UsedSource.of(ref, there[ref.name])
            if twice := [name for name in one.names if name in owners]:
                other = owners[twice[0]]
                raise InvalidObject(f"SignalSource {ref.name} has {twice[0]}, as has {other}: change one of them")
            if sum(len(other.rules) for other in (*used, one)) > RULE_LIMIT:
                before = f"the rules of SignalSource {ref.name} and those before it"
                raise InvalidObject(f"{before} are more than {RULE_LIMIT}: remove some")
        except InvalidObject as error:
            problems[index] = str(error)
            continue
        used.append(one)
        owners |= dict.fromkeys(one.names, ref.name)
    return ChosenSources(tuple(used), problems)
