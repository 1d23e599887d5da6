from io import StringIO

from rich.console import Console

from demo.health import BrokerWord, Words
from demo.latencies import Latency
from demo.samples import Kind
from demo.table import Scene, drawn, logged, recent
from testkit.processes.demo_runs import sample

SICK = BrokerWord(1, "Sick", "ExternallyUnreachable", "", "2026-01-01T10:20:30Z", True, {"StorageLatency": 1.0})


def scene(
    step: str = "step 3 of 7, about 1.9 min left: broker 1's listener cut, Bellwether off",
    elapsed: float = 12.0,
    leaders: dict[int, int] | None = None,
    sick: BrokerWord = SICK,
) -> Scene:
    latencies = {kind: Latency(1, 0, 0, 1.5, 2.5) for kind in Kind}
    return Scene(step, elapsed, Words("LeadersMoving: 5 left", {1: sick}), leaders or {1: 5, 2: 0}, latencies, 7)


def lines(shown: Scene, width: int = 80) -> list[str]:
    console = Console(width=width, record=True, file=StringIO())
    console.print(drawn(shown))
    return console.export_text().splitlines()


def test_on_80_columns_no_word_of_a_sick_broker_is_cut() -> None:
    text = "\n".join(lines(scene()))

    for word in (
        "step 3 of 7",
        "Bellwether off",
        "Sick",
        "ExternallyUnreachable",
        "yes",
        "LeadersMoving: 5 left",
        "acks=all",
    ):
        assert word in text
    assert "7 writes are more than 1 s late" in text


def test_the_columns_stay_where_they_are_when_a_broker_turns_sick() -> None:
    healthy = BrokerWord(1, "Healthy", "SignalsPassing", latencies={"ExternalReachability": 2.0})

    def at(shown: Scene) -> int:
        return next(line.index("leaders") for line in lines(shown) if line.startswith("broker"))

    assert at(scene(sick=healthy)) == at(scene())
    assert len(lines(scene(sick=healthy))) == len(lines(scene()))


def test_a_line_of_the_log_does_not_change_with_the_clock_and_names_who_is_not_healthy() -> None:
    assert logged(scene(elapsed=1.0)) == logged(scene(elapsed=2.0))
    assert logged(scene(leaders={1: 4})) == "leaders 4; broker 1 Sick (ExternallyUnreachable, demoted)"


def test_recent_latencies_leave_out_what_is_long_over() -> None:
    samples = (sample(due=1.0, seconds=9.0, kind=Kind.FETCH), sample(due=99.0, seconds=0.5, kind=Kind.FETCH))

    assert recent(samples, now=100.0)[Kind.FETCH].p99_ms == 500.0
