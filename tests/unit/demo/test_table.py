from io import StringIO

from rich.console import Console

from demo.health import BrokerWord, Words
from demo.latencies import Latency
from demo.samples import Kind
from demo.table import Scene, drawn, recent, told
from testkit.demoruns import sample

SICK = BrokerWord(1, "Sick", "ExternallyUnreachable", "2026-01-01T10:20:30Z", True, {"StorageLatency": 1.0})


def scene(step: str = "broken", elapsed: float = 12.0, leaders: dict[int, int] | None = None) -> Scene:
    latencies = {kind: Latency(1, 0, 1.5, 2.5) for kind in Kind}
    return Scene(step, elapsed, Words("Moving: 5 left", {1: SICK}), leaders or {1: 5, 2: 0}, latencies)


def test_the_table_says_who_is_sick_why_since_when_and_how_much_each_broker_leads() -> None:
    console = Console(width=120, record=True, file=StringIO())
    console.print(drawn(scene()))
    text = console.export_text()

    for word in ("Sick (demoted)", "ExternallyUnreachable", "10:20:30", "5", "Moving: 5 left", "acks=all"):
        assert word in text


def test_a_line_does_not_change_with_the_clock() -> None:
    assert told(scene(elapsed=1.0)) == told(scene(elapsed=2.0))
    assert told(scene(leaders={1: 4, 2: 1})) != told(scene())


def test_recent_latencies_leave_out_what_is_long_over() -> None:
    samples = (sample(due=1.0, seconds=9.0, kind=Kind.FETCH), sample(due=99.0, seconds=0.5, kind=Kind.FETCH))

    assert recent(samples, now=100.0)[Kind.FETCH].p99_ms == 500.0
