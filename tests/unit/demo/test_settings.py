import pytest

from demo.settings import Settings, parse


def test_the_defaults_are_a_thousand_partitions_on_three_brokers() -> None:
    assert parse([], {}) == Settings()
    assert (Settings().brokers, Settings().partitions) == (3, 1000)


@pytest.mark.parametrize(("value", "kept"), [("1", True), ("0", False), ("", False)])
def test_keep_comes_from_the_environment_as_make_passes_it(value: str, kept: bool) -> None:
    assert parse([], {"KEEP": value}).keep is kept


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--brokers", "2"], "--brokers must be at least 3"),
        (["--partitions", "61"], "multiple of 5"),
        (["--partitions", "0"], "multiple of 5"),
        (["--rate", "0"], "--rate must be above 0"),
        (["--repeat", "-1"], "--repeat must be above 0"),
    ],
)
def test_bad_settings_are_refused_by_name(arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(arguments, {})

    assert word in capsys.readouterr().err


def test_repeating_writes_a_report_of_its_own() -> None:
    assert Settings(repeat=10).report.name == "bench-demo.json"
    assert Settings().report.name == "demo.json"
