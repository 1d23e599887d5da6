"""What the jobs of a rebalance are started with."""

from __future__ import annotations

import shlex

import pytest

from bellwether_load.api.load_config import LoadSettings, LoadStore
from bellwether_load.controller.job_commands import (
    commands,
    cores,
    heap_mebibytes,
    last_words,
    submit_arguments,
)
from testkit.loads.load_configs import profile
from testkit.messages import assert_wording


def test_loads_are_measured_and_then_the_plan_is_made_from_them():
    settings = LoadSettings(LoadStore(namespaces=("kafka",), uri="s3://loads"), profile(), "s3://loads/main")
    loads, plan = commands(settings, "kafka.main.at-1", 14, "cluster-1")
    assert_wording(shlex.join(loads), shlex.join(plan))


@pytest.mark.parametrize(
    ("memory", "mebibytes"),
    [("4Gi", 2457), ("1Gi", 614), ("512Mi", 512), ("8G", 4577), ("1.5Gi", 921), ("64Gi", 39321)],
)
def test_the_jvm_gets_a_share_of_the_pods_memory_and_what_spark_needs_at_least(memory: str, mebibytes: int):
    assert heap_mebibytes(memory) == mebibytes


@pytest.mark.parametrize(("cpu", "whole"), [("2", 2), ("500m", 1), ("1500m", 2), ("2.5", 3), ("16", 16)])
def test_cores_are_whole(cpu: str, whole: int):
    assert cores(cpu) == whole


def test_settings_survive_the_way_to_spark_whatever_is_in_them():
    given = {"spark.a": "two words", "spark.b": 'it\'s "quoted" $HOME', "spark.c": "x=y"}
    words = shlex.split(submit_arguments(given))
    assert words == [*(w for n, v in given.items() for w in ("--conf", f"{n}={v}")), "pyspark-shell"]


def test_the_last_words_are_the_error_where_the_job_names_one():
    said = ["  1.0 s  Spark is up", "error: loads/x: is not there", "", "26/11/21 WARN shutting down"]
    assert_wording(last_words(said))


def test_the_last_words_are_the_end_of_what_was_said_otherwise():
    assert_wording(last_words(["a", "b  c", "", "d", "e"]))
    assert last_words([]) == ""
    assert last_words(["x" * 1000]) == "…" + "x" * 600
