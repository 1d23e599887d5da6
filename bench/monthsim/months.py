"""One cluster's month, seen by every rule set at once: the probers' news are the same for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from numpy.random import Generator

from bellwether.core.settings.detection import Detection
from bellwether.core.settings.policy import Mode, Policy, Quarantine, QuarantineMode
from monthsim import disks, paths, peers
from monthsim.assumptions import VANTAGES
from monthsim.episodes import Month, PathEffect
from monthsim.paths import News
from monthsim.reconciles import Operator, Outcome
from monthsim.scoring import Score, score

OURS = "bellwether"
ALONE = "bellwether-no-agent"
INTERNAL_SECONDS = 0.004
CRUISE_CONTROL_SLACK_SECONDS = 600.0
RULES = {
    OURS: "judge and decide of the core, default settings, with a quarantine agent on each broker",
    ALONE: "the same without quarantine agents",
    "cruise-control": "SlowBrokerFinder as published: 5-minute rounds, score 5, three tests, a tenth of the cluster",
    "cruise-control-1s": "the same three tests, idealised: a round each second, no share of the cluster",
    "own-history": "3 times the 90th percentile of its own history, a round each second, score 5",
    "peer-median": "3 times the median of its peers, a round each second, score 5",
    "absolute-1s": "1 s, a round each second, score 5",
    "single-probe": "one vantage, 3 failures in a row",
    "fixed-count": "2 of 3 vantages, 6 failures in a row; 40 of 50 slow writes: Bellwether before it weighed harm",
    "k-of-n": "2 of 3 vantages, or 5 of 10 slow writes; neither control nor peers, nor cap, nor dwell",
}


@dataclass(frozen=True)
class Seen:
    """What the probers of one month had to say."""

    news: tuple[News, ...]
    plain: tuple[News, ...]
    """The same months as plain probes count them, for the peers' rules."""
    counted: tuple[News, ...]
    """The same with the thresholds that Bellwether had before it weighed harm."""
    writes: Mapping[int, tuple[tuple[float, float], ...]]


def look(month: Month, detection: Detection, rng: Generator, *, with_peers: bool = False) -> Seen:
    """The news of every vantage and every storage prober, as the operator hears them."""
    news: list[News] = []
    plain: list[News] = []
    counted: list[News] = []
    by_prober = rng.spawn((VANTAGES + 1) * month.brokers)
    by_path: dict[tuple[int, int], list[PathEffect]] = {}
    for episode in month.episodes:
        for effect in episode.paths:
            for broker in effect.brokers:
                for vantage in effect.vantages:
                    by_path.setdefault((vantage, broker), []).append(effect)
    for (vantage, broker), effects in sorted(by_path.items()):
        outside = paths.Question(
            month.delays[vantage] + month.world.external_delay_seconds, tuple(e for e in effects if e.external)
        )
        inside = paths.Question(INTERNAL_SECONDS + month.delays[vantage], tuple(e for e in effects if e.internal))
        phase = float(month.phases[vantage, broker])
        own = by_prober[vantage * month.brokers + broker]
        news += paths.watch(broker, vantage, phase, outside, inside, detection.external_reachability, own)
        if with_peers:
            plain += paths.plain(broker, vantage, phase, outside, own)
            counted += paths.plain(broker, vantage, phase, outside, own, in_a_row=6)
    writes = {}
    for broker in range(month.brokers):
        volume = disks.volume_of(month, broker)
        phase = float(month.phases[VANTAGES, broker])
        own = by_prober[VANTAGES * month.brokers + broker]
        sooner, steady = own.spawn(2)
        begun = tuple(disks.writes(volume, phase, sooner, detection.objectives))
        news += disks.watch(volume, begun, detection.objectives)
        if with_peers:
            writes[broker] = tuple(disks.writes(volume, phase, steady))
            plain += disks.plain(volume, writes[broker])
            counted += disks.plain(volume, writes[broker], slow=40, of=50)
    return Seen(_as_heard(news, month, rng), _as_heard(plain, month, rng), _as_heard(counted, month, rng), writes)


def _as_heard(news: Sequence[News], month: Month, rng: Generator) -> tuple[News, ...]:
    """A prober's outbox never tells an older word after a newer one."""
    heard: list[News] = []
    last: dict[tuple[int, str], float] = {}
    for one in sorted(news, key=lambda n: n.time):
        key = one.signal.broker, one.signal.source
        last[key] = max(last.get(key, 0.0), _heard(one, month, rng))
        heard.append(replace(one, time=last[key]))
    return tuple(sorted(heard, key=lambda n: n.time))


def _heard(news: News, month: Month, rng: Generator) -> float:
    """When the operator hears of it: a prober that is gone tells its last word when it is back."""
    time = news.time + month.world.report_seconds * float(rng.uniform(0.0, 2.0))
    for episode in month.episodes:
        for absence in episode.silent:
            if news.signal.source == f"v{absence.who}" and absence.start <= time < absence.end:
                time = absence.end + 4.0
    return time


def our_policy(detection: Detection | None = None) -> Policy:
    """The default policy, acting, where agents can hold brokers."""
    quarantine = Quarantine(mode=QuarantineMode.ENABLED)
    return Policy(name="simulated", mode=Mode.ENFORCE, detection=detection or Detection(), quarantine=quarantine)


def operate(month: Month, seen: Seen, policy: Policy) -> Outcome:
    """What our own rules did."""
    fenced = tuple(a for e in month.episodes for a in e.fenced)
    silent = tuple(a for e in month.episodes for a in e.silent)
    return Operator(month, policy).run(seen.news, fenced, silent)


def live(month: Month, policy: Policy, rng: Generator, *, with_peers: bool) -> dict[str, Score]:
    """Scores by rule set; ``down`` is scored apart, as its own."""
    seen = look(month, policy.detection, rng, with_peers=with_peers)
    ours, alone = operate(month, seen, policy), operate(month, seen, replace(policy, quarantine=Quarantine()))
    found = {OURS: score(month, ours.demotions, ours.held), "down": score(month, ours.downs)}
    found[ALONE] = score(month, alone.demotions, alone.held)
    if not with_peers:
        return found
    by_second = peers.second_by_second(month, peers.seconds_of(month, seen.writes, rng))
    found["cruise-control"] = score(month, peers.cruise_control(month, rng), slack_seconds=CRUISE_CONTROL_SLACK_SECONDS)
    found["cruise-control-1s"] = score(month, by_second["all three"])
    found["own-history"] = score(month, by_second["own history"])
    found["peer-median"] = score(month, by_second["peers"])
    found["absolute-1s"] = score(month, by_second["absolute"])
    found["single-probe"] = score(month, peers.single_probe(seen.plain))
    found["k-of-n"] = score(month, peers.k_of_n(seen.plain))
    found["fixed-count"] = score(month, peers.k_of_n(seen.counted))
    return found
