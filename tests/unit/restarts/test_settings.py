"""What may be chosen about a rolling restart, and what is refused in words."""

from __future__ import annotations

import pytest

from restarts.settings import KAFKA_CHECKS_SECONDS, Settings, parse


def test_nothing_chosen_is_six_brokers_and_the_patience_to_see_kafka_balance_by_itself():
    assert parse([]) == Settings()
    assert Settings().brokers == 6
    assert Settings().patience > KAFKA_CHECKS_SECONDS


def test_everything_can_be_chosen():
    words = "--brokers 3 --partitions 12 --rate 5 --quiet 1 --gap 2 --patience 3 --reports /x"
    chosen = parse(words.split())
    assert (chosen.brokers, chosen.partitions, chosen.rate, chosen.quiet) == (3, 12, 5, 1)
    assert str(chosen.report) == "/x/restart.json"


@pytest.mark.parametrize("bad", ["--brokers 2", "--partitions 5", "--rate 0", "--rate -1"])
def test_what_makes_no_sense_is_refused(bad: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        parse(bad.split())
    assert "must be" in capsys.readouterr().err
