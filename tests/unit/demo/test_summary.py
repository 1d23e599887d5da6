from io import StringIO

from rich.console import Console

from demo import summary
from demo.report import Report, fault_figures
from demo.samples import Kind
from testkit.processes.demo_runs import control, fault, observed, quarantined, report, sample


def compared() -> Report:
    samples = [sample(due=due, seconds=seconds) for due, seconds in ((5, 0.004), (12, 13.0), (20, 0.005))]
    faults = [control(), fault(), quarantined()]
    return report(faults=[fault_figures(one, samples, observed()) for one in faults])


def printed(made: Report, broken: list[str] | None = None, width: int = 100) -> list[str]:
    console = Console(width=width, record=True, file=StringIO())
    summary.show(console, made, broken or [])
    return console.export_text().splitlines()


def test_the_summary_leads_with_the_answer() -> None:
    assert next(summary.answers(compared())) == (
        "External listener cut: all 1 leaders left broker 1 in 5.0 s; without Bellwether none had left after 15.0 s, "
        "when the demo repaired it. They were back 20.0 s after the repair."
    )
    assert "0 of 10 records acknowledged with acks=all are lost." in summary.answers(compared())


def test_what_was_broken_comes_before_every_answer() -> None:
    assert printed(compared(), ["3 records are lost"])[1] == "BROKEN  3 records are lost"


def test_everything_fits_80_columns_with_nothing_cut() -> None:
    made = compared()
    made["partitions"] = 1_000_010

    lines = printed(made, width=80)

    assert max(len(line.rstrip()) for line in lines) <= 80
    assert not any("…" in line for line in lines)


def test_the_latencies_with_and_without_bellwether_are_in_one_row() -> None:
    row = next(line for line in printed(compared()) if line.strip().startswith("acks=1"))

    assert row.split() == ["acks=1", "4.0", "ms", "13.0", "s", "13.0", "s", "5.0", "ms", "-"]


def test_a_slow_disk_is_called_slow_and_not_unreachable() -> None:
    text = "\n".join(printed(compared()))

    assert text.count("  unreachable for") == 1
    assert text.count("  slow for") == 1


def test_acks_all_with_the_broker_held_is_in_the_answer() -> None:
    strict = [sample(due=d, seconds=s, kind=Kind.ACKS_ALL) for d, s in ((5, 0.002), (12, 4.0), (23, 0.003))]
    made = report(faults=[fault_figures(quarantined(), strict, observed())])

    assert "acks=all next to broker 1, p50: 2.0 ms before the fault, 4.0 s until it was held, 3.0 ms since." in set(
        summary.answers(made)
    )
    assert any("A held broker is down" in sentence for sentence in summary.shortcomings(made))


def test_a_machine_that_was_slow_before_any_fault_is_named() -> None:
    busy = [fault_figures(fault(), [sample(due=5, seconds=3.7)], observed())]

    assert "busy" in next(summary.shortcomings(report(faults=busy)))
    assert not any("busy" in sentence for sentence in summary.shortcomings(compared()))
