"""Table of one measurement, printed by ``bellwether probe ... --once``; nothing is reported.

Each function returns the exit status: 0 if everything passed, ``FOUND`` otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from bellwether.cli import exit_status
from bellwether.cli.output import print_rows
from bellwether.core.model.broker_identity import Hosts, Named
from bellwether.core.settings.detection import Detection, Reachability, ReplicationLag, SelfReachability, StorageLatency
from bellwether.core.settings.harm import Objectives
from bellwether.core.settings.source_settings import Comparison, Plugin, PrometheusRule
from bellwether.core.signals import Reading
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.kafka import ProbeAnswer
from bellwether.probes.canary.canary_probe import CanaryProbe
from bellwether.probes.canary.canary_state import CanaryState, late
from bellwether.probes.connections.self_reachability import measure_once as sample_once
from bellwether.probes.connections.socket_table import SocketTable
from bellwether.probes.plugins.measurer_probe import attempted
from bellwether.probes.plugins.plugin_api import Measurer
from bellwether.probes.plugins.plugin_discovery import Found
from bellwether.probes.prometheus.prometheus_probe import QueryClient, answer_of
from bellwether.probes.prometheus.query_rules import figures, judge
from bellwether.probes.reachability.asked_round import no_answer
from bellwether.probes.reachability.broker_watch import BrokerAddress, ListenerClient
from bellwether.probes.reachability.reachability_probe import TwoSides
from bellwether.probes.reachability.reachability_state import milliseconds
from bellwether.probes.replication.lag_round import LagRounds
from bellwether.probes.replication.lag_state import sentence
from bellwether.probes.replication.replication_probe import measure_once as watch_once
from bellwether.probes.replication.replication_probe import reading as lag_reading
from bellwether.probes.storage.disk_read import DiskReader
from bellwether.probes.storage.disk_write import DiskWriter
from bellwether.probes.storage.read_probe import read_once
from bellwether.probes.storage.write_latency import Sample
from bellwether.probes.storage.write_probe import measure_once, reading

CANARY_SECONDS = 10.0
"""How long a single measurement waits for the canary's records."""

_FENCED = "not in the cluster's metadata: fenced by the controller, or down: check the broker's process and its log"

_CHECK_LISTENER = "correct detection.externalReachability.listeners (or --listener)"


def reachability(roster: TwoSides, asker: ListenerClient, settings: Reachability, output: str) -> int:
    """Probe every broker once, at each external and its internal address."""
    targets = roster.targets()
    with ThreadPoolExecutor(max(1, len(targets))) as pool:
        found = pool.map(lambda item: _broker(item[0], item[1], asker, settings), targets.items())
        rows = [row for rows in found for row in rows]
    head = ("BROKER", "EXTERNAL ADDRESS", "EXTERNAL", "LATENCY", "INTERNAL", "INTERNAL LATENCY", "MESSAGE")
    return _printed(head, rows, output, 2)


def storage(
    disks: Mapping[str, tuple[DiskWriter, DiskReader | None]], detection: Detection, clock: Clock, output: str
) -> int:
    """Measure one append and one sync in each directory, and one read where there is a reader.

    Reads that cannot be measured are no failure, and neither are slow syncs, for which no client waits.
    """
    rows = [row for path, disk in disks.items() for row in _disk_rows(path, *disk, detection, clock)]
    print_rows(("DIRECTORY", "OPERATION", "READING", "LATENCY", "OBJECTIVE", "MESSAGE"), rows, output)
    failed = any(row[2] == Reading.FAILING or (row[1] == "write" and row[2] != Reading.PASSING) for row in rows)
    return exit_status.FOUND if failed else 0


def _disk_rows(
    directory: str, writer: DiskWriter, reader: DiskReader | None, detection: Detection, clock: Clock
) -> list[tuple[str, ...]]:
    objectives, timeout = detection.objectives, StorageLatency.timeout_seconds
    rows = []
    samples = zip(("write", "sync"), measure_once(writer, timeout, clock), strict=True)
    for operation, sample in samples:
        found, message = reading(sample, objectives), sample.problem
        if sample.stalled:
            message = f"the {operation} did not finish within {timeout} s"
        if operation == "sync" and found is Reading.FAILING and not sample.problem:
            found = Reading.PASSING
        rows.append(_disk_row(operation, directory, sample, found, objectives.produce_milliseconds, message))
    if reader is not None:
        objective = objectives.fetch_milliseconds
        sample = read_once(reader, timeout, clock)
        ok = Reading.FAILING if sample.problem or sample.seconds * 1000 > objective else Reading.PASSING
        rows.append(_disk_row("read", directory, sample, Reading.UNKNOWN if sample.own_trouble else ok, objective))
    return rows


def _disk_row(
    operation: str, directory: str, sample: Sample, found: Reading, objective: int, message: str = ""
) -> tuple[str, ...]:
    latency = "" if sample.problem else milliseconds(sample.seconds)
    return directory, operation, str(found), latency, f"{objective} ms", message or sample.problem


def canary(probe: CanaryProbe, brokers: Collection[int], objectives: Objectives, clock: Clock, output: str) -> int:
    """Produce to every broker and fetch the record, until each has an answer of both kinds or CANARY_SECONDS pass."""
    until = clock.monotonic() + CANARY_SECONDS
    while clock.monotonic() < until and not all(_both_answered(probe.states().get(b)) for b in brokers):
        probe.run_round()
    rows = [(str(broker), *_canary_cells(state, objectives)) for broker, state in sorted(probe.states().items())]
    return _printed(("BROKER", "CANARY", "PRODUCE", "FETCH"), rows, output)


def _both_answered(state: CanaryState | None) -> bool:
    return state is not None and bool(state.produce.times and state.fetch.times)


def _canary_cells(state: CanaryState, objectives: Objectives) -> tuple[str, ...]:
    slow, cells = False, []
    for requests in (state.produce, state.fetch):
        latency = requests.times[-1] if requests.times and not requests.problem else None
        slow = slow or latency is None or late(requests.kind, latency, objectives)
        cells.append(milliseconds(latency) if latency is not None else requests.trouble or requests.problem)
    return (str(Reading.FAILING if slow else Reading.PASSING), *cells)


def replication(soundings: LagRounds, settings: ReplicationLag, clock: Clock, output: str) -> int:
    """Watch the followers that are behind until it is clear whether they lag."""
    rows = [
        (
            str(broker),
            str(lag_reading(look)),
            "" if look.problem else f"{look.worst_seconds:.1f} s",
            "" if look.problem else str(look.lagging),
            "" if look.problem else str(look.in_isr),
            sentence(look),
        )
        for broker, look in sorted(watch_once(soundings, settings, clock).items())
    ]
    return _printed(("BROKER", "REPLICATION", "LAG", "LAGGING", "IN ISR", "MESSAGE"), rows, output)


def plugin(
    measurer: Measurer, brokers: Mapping[int, Mapping[str, str]], settings: Plugin, clock: Clock, output: str
) -> int:
    """Measure every broker once with a plugin."""
    rows = []
    for broker, seen in attempted(measurer, brokers, settings, clock).items():
        reading = {True: Reading.PASSING, False: Reading.FAILING, None: Reading.UNKNOWN}[seen.ok]
        rows.append((str(broker), str(reading), "" if seen.value is None else f"{seen.value:.6g}", seen.message))
    return _printed(("BROKER", settings.type.upper(), "VALUE", "MESSAGE"), rows, output)


def prometheus(asked: Iterable[tuple[PrometheusRule, QueryClient]], hosts: Hosts, output: str) -> int:
    """Evaluate every rule once. Empty ``hosts``: all brokers whose ids are in the query results."""
    rows = [row for rule, client in asked for row in _rule(client, rule, hosts)]
    return _printed(("RULE", "BROKER", "PROMETHEUS", "VALUE", "PEERS", "THRESHOLD", "MESSAGE"), rows, output, 2)


def plugins(found: Sequence[Found], output: str) -> int:
    """Print the installed plugins."""
    rows = [(one.type, one.origin, one.target, one.problem or "ready") for one in found]
    print_rows(("TYPE", "PACKAGE", "ENTRY POINT", "STATE"), rows, output)
    return exit_status.FOUND if any(one.problem for one in found) else 0


def self_reachability(table: SocketTable, port: int, settings: SelfReachability, clock: Clock, output: str) -> int:
    """Watch until an external client is seen, or until the listener counts as idle."""
    try:
        look, found, seconds = sample_once(table, settings, clock)
    finally:
        table.close()
    deaf = "" if look.listening else "no process listens on this port"
    blind = look.blind if found is Reading.UNKNOWN else ""
    row = (
        str(port),
        table.kind,
        str(look.connections),
        str(found),
        "" if found is Reading.UNKNOWN else f"{seconds:.1f} s",
        look.problem or deaf or blind,
    )
    print_rows(("PORT", "TABLE", "CONNECTIONS", "CLIENTS", "LAST SEEN", "MESSAGE"), [row], output)
    return 0 if found is Reading.PASSING else exit_status.FOUND


def _printed(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], output: str, column: int = 1) -> int:
    """Print the rows; exit status 0 if there are some, and each one's reading, in that column, passes."""
    print_rows(head, rows, output)
    return 0 if rows and all(row[column] == Reading.PASSING for row in rows) else exit_status.FOUND


def _rule(client: QueryClient, rule: PrometheusRule, hosts: Hosts) -> list[tuple[str, ...]]:
    limit = f"{'>' if rule.comparison is Comparison.ABOVE else '<'} {rule.threshold:g}"
    try:
        samples = answer_of(client, rule, rule.timeout_seconds).samples
    except (Transient, Terminal) as error:
        return [(rule.name, "?", str(Reading.UNKNOWN), "", "", limit, f"Prometheus {error}")]
    stated = {broker for labels, _ in samples for broker in Named.of_labels(labels, rule.broker_label).stated_ids}
    known = hosts or dict.fromkeys(stated, ())
    found, rows = figures(samples, rule, known), []
    for broker in sorted(known):
        seen = judge(broker, found, rule)
        reading = {None: Reading.UNKNOWN, True: Reading.FAILING, False: Reading.PASSING}[seen.bad]
        cells = ["" if figure is None else f"{figure:.4g}" for figure in (seen.value, seen.peers)]
        rows.append((rule.name, str(broker), str(reading), *cells, limit, seen.problem))
    rows += [(rule.name, "?", str(Reading.UNKNOWN), "", "", limit, odd) for odd in found.odd.values()]
    return rows or [(rule.name, "?", str(Reading.UNKNOWN), "", "", limit, "the query returned no result")]


def _broker(broker: int, target: BrokerAddress, asker: ListenerClient, settings: Reachability) -> list[tuple[str, ...]]:
    """A row for each external listener."""
    inside = _ask(asker, target.internal, broker, settings)
    said = {**inside.advertised} if inside is not None and inside.ok else {}
    rows: list[tuple[str, ...]] = []
    for number, listener in enumerate(settings.listeners):
        address = said.get(listener) or (target.external if number == 0 else "")
        outside = _ask(asker, address, broker, settings)
        said = {**outside.advertised, **said} if outside is not None and outside.ok else said
        notes = [a.message for a in (outside, inside) if a is not None and a.message]
        if target.fenced:
            notes.insert(0, _FENCED)
        elif said and not address:
            notes.append(f"the broker advertises {', '.join(sorted(said))}, not {listener}: {_CHECK_LISTENER}")
        elif not address:
            notes.append("external address unknown: only the broker's internal listener returns it")
        rows.append((str(broker), address or "?", *_cells(outside), *_cells(inside), "; ".join(notes)))
    return rows


def _ask(asker: ListenerClient, address: str, broker: int, settings: Reachability) -> ProbeAnswer | None:
    if not address:
        return None
    try:
        return asker.ask(address, broker, settings.timeout_seconds)
    except (Transient, Terminal) as error:
        return no_answer(str(error), 0.0)


def _cells(answer: ProbeAnswer | None) -> tuple[str, str]:
    if answer is None:
        return str(Reading.UNKNOWN), ""
    return str(Reading.PASSING if answer.ok else Reading.FAILING), milliseconds(answer.seconds)
