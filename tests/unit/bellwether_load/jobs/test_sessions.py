"""What a session is asked for; tests/spark has what comes of it."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from bellwether_load.jobs.sessions import LOGGING, defaults


def test_a_local_session_listens_on_the_loopback_address_only():
    found = defaults("local[*]", None)
    assert found["spark.driver.bindAddress"] == "127.0.0.1"
    assert found["spark.ui.enabled"] == "false"


@pytest.mark.parametrize("master", ["spark://master:7077", "k8s://https://kubernetes.default.svc"])
def test_executors_elsewhere_must_reach_the_driver(master: str):
    assert not any(key.startswith("spark.driver.bind") or key == "spark.driver.host" for key in defaults(master, None))


def test_memory_is_the_drivers_heap():
    assert defaults("local[*]", "3g")["spark.driver.memory"] == "3g"
    assert "spark.driver.memory" not in defaults("local[*]", None)


def test_spark_logs_what_goes_wrong_and_no_more():
    option = defaults("local[*]", None)["spark.driver.extraJavaOptions"]
    assert urlsplit(option.partition("=")[2]).path == str(LOGGING)
    assert "rootLogger.level = error" in LOGGING.read_text()
