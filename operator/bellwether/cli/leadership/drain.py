"""``bellwether drain``: take leadership from a broker before it is stopped, wait until that may be done, hand it back.

In: a policy's and a broker's names. Out: an override with purpose Maintenance on its BrokerHealth, sentences, and an
exit status that a rollout script can go by. The operator does the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import KubernetesClient, connect
from bellwether.cli import durations
from bellwether.cli.leadership import broker_lookup, overrides
from bellwether.core.reasons import Reason
from bellwether.core.signals import OverrideState, Purpose
from bellwether.ports.errors import BellwetherError, Terminal, Transient

EXIT_HELD = 3
"""Exit status when the drain is held or does not end in time, so that scripts can tell it from other trouble."""

POLL_SECONDS = 0.5
ANSWER_SECONDS = 20.0
"""How long the operator is given to say that it holds a drain that nobody waits for."""

UNDER_WAY = frozenset({str(Reason.DRAINING), str(Reason.DRAINED)})


@dataclass(frozen=True)
class Sight:
    """How a drain stands: the condition ``Drained``, and ``Demoted`` where there is none (None: not judged yet)."""

    drained: bool | None
    demoted: bool | None
    reason: str
    message: str
    current: bool
    """Whether it is about the override as it stands now."""

    @property
    def held(self) -> bool:
        """Whether the operator refuses to drain the broker for now."""
        return self.current and self.drained is False and self.reason not in UNDER_WAY

    @property
    def leads(self) -> bool:
        """Whether the maintenance is over and all leaders may be back, later waves included."""
        returning = self.reason == Reason.RETURNING_IN_WAVES
        return self.current and self.drained is None and self.demoted is False and not returning


def drain(broker: int, policy: str, namespace: str, **options: Any) -> None:
    """Take leadership from BROKER before a restart, so that it may be stopped."""
    limit = durations.duration(options["timeout"], "--timeout")
    lasts = durations.duration(options["until"], "--until")
    if lasts <= timedelta(0):
        raise click.UsageError("--until 0: the maintenance would be over before it begins")
    try:
        api = connect()
        if options["end"]:
            _end(api, namespace, policy, broker, limit if options["wait"] else None)
            return
        until = _later(SystemClock().now(), lasts)
        _begin(api, namespace, policy, broker, options["reason"] or "bellwether drain", until)
        _await(api, namespace, policy, broker, limit, wait=options["wait"])
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None


def _begin(api: KubernetesClient, namespace: str, policy: str, broker: int, reason: str, until: datetime) -> None:
    standing = _override(api, namespace, policy, broker)
    if standing is not None and not overrides.ended(standing, SystemClock().now()) and not _maintains(standing):
        raise Terminal(
            f"broker {broker} has an override {standing.get('state')} already ({standing.get('reason')}): take it away "
            f"first with bellwether release {broker} --policy {policy} -n {namespace}"
        )
    body = overrides.override_body(OverrideState.DEMOTED, reason, overrides.whoami(), until, Purpose.MAINTENANCE)
    overrides.set_override(api, namespace, policy, broker, body)
    click.echo(f"broker {broker} is in maintenance until {body['until']}")


def _end(api: KubernetesClient, namespace: str, policy: str, broker: int, limit: timedelta | None) -> None:
    standing = _override(api, namespace, policy, broker)
    if standing is not None and not _maintains(standing):
        raise Terminal(
            f"broker {broker} is not in maintenance: its override {standing.get('state')} ({standing.get('reason')}) "
            f"has another purpose, and ends with bellwether release {broker} --policy {policy} -n {namespace}"
        )
    if standing is None:
        click.echo(f"broker {broker} has no maintenance to end")
    else:
        overrides.set_override(api, namespace, policy, broker, None)
        click.echo(f"broker {broker}: its maintenance is over; it leads again once it is well")
    if limit is None:
        return
    last = _look_until(api, namespace, policy, broker, limit, lambda sight: sight.leads)
    if not last.leads:
        _give_up(f"broker {broker} does not lead again within {_seconds(limit)}: {last.message} ({last.reason})")
    click.echo(f"nothing keeps broker {broker} from leading")


def _await(api: KubernetesClient, namespace: str, policy: str, broker: int, limit: timedelta, *, wait: bool) -> None:
    """Wait for the drain, or only for the operator's first word on it."""
    idle = overrides.without_effect(broker_lookup.find_policy(api, namespace, policy))
    if idle is not None:
        _give_up(f"not drained: {idle}")
    if not wait:
        limit = min(limit, timedelta(seconds=ANSWER_SECONDS))
    name = object_names.broker_health(policy, broker)
    later = f"kubectl wait --for=condition=Drained bh/{name} -n {namespace} waits for the end of the drain"

    def enough(sight: Sight) -> bool:
        lasting = sight.held and sight.reason in _LASTING
        return sight.current and (bool(sight.drained) or lasting or (not wait and sight.drained is not None))

    last = _look_until(api, namespace, policy, broker, limit, enough)
    if last.drained and last.current:
        click.echo(f"broker {broker} is drained: it may be stopped")
    elif last.held:
        undo = f"bellwether drain {broker} --policy {policy} -n {namespace} --end"
        _give_up(f"held: {last.message} ({last.reason}); it goes on by itself once it can, {undo} gives it up")
    elif wait:
        amiss = (
            broker_lookup.trouble(broker_lookup.find_policy(api, namespace, policy))
            or "the operator has not looked yet"
        )
        _give_up(f"not drained within {_seconds(limit)}: {last.message if last.current else amiss}")
    else:
        click.echo(f"the drain is under way; {later}")


_LASTING = frozenset({str(r) for r in (Reason.LAST_HEALTHY_BROKER, Reason.OBSERVING, Reason.SUSPENDED)})
"""Why a drain is held that waiting does not cure."""


def _look_until(
    api: KubernetesClient,
    namespace: str,
    policy: str,
    broker: int,
    limit: timedelta,
    enough: Callable[[Sight], bool],
) -> Sight:
    """Look until it is enough, or the time is over; tells every change. The last thing seen."""
    end, said = time.monotonic() + limit.total_seconds(), ""
    last = Sight(None, None, "", "", current=False)
    while True:
        try:
            last = look(api, namespace, policy, broker)
            text = f"{last.message} ({last.reason})" if last.reason and last.current else ""
        except Transient as error:
            text = f"going on: {error}"
        else:
            if enough(last):
                return last
        if text not in ("", said):
            click.echo(text)
            said = text
        if time.monotonic() >= end:
            return last
        time.sleep(POLL_SECONDS)


def look(api: KubernetesClient, namespace: str, policy: str, broker: int) -> Sight:
    """How the drain of a broker stands now. Raises Transient, and Terminal where the broker is unknown."""
    body = broker_lookup.find_health(api, namespace, policy, broker)
    drained, demoted = broker_lookup.condition(body, "Drained"), broker_lookup.condition(body, "Demoted")
    told = drained or demoted or {}
    seen = (body.get("status") or {}).get("observedGeneration")
    return Sight(
        drained=None if drained is None else drained["status"] == "True",
        demoted=None if demoted is None else demoted["status"] == "True",
        reason=str(told.get("reason", "")),
        message=str(told.get("message", "")),
        current=seen is not None and seen >= int(body["metadata"].get("generation") or 0),
    )


def _override(api: KubernetesClient, namespace: str, policy: str, broker: int) -> dict[str, Any] | None:
    found: dict[str, Any] | None = (broker_lookup.find_health(api, namespace, policy, broker).get("spec") or {}).get(
        "override"
    )
    return found


def _maintains(override: dict[str, Any]) -> bool:
    return override.get("purpose") == Purpose.MAINTENANCE


def _give_up(text: str) -> None:
    click.echo(text, err=True)
    raise click.exceptions.Exit(EXIT_HELD)


def _later(now: datetime, lasts: timedelta) -> datetime:
    try:
        return now + lasts
    except OverflowError:
        raise click.UsageError(f"--until {lasts} is longer than a calendar reaches") from None


def _seconds(limit: timedelta) -> str:
    return f"{limit.total_seconds():g} s"
