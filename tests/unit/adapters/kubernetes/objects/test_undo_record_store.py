"""What others write into the objects of an undo record is refused with words, and costs little."""

from __future__ import annotations

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS
from bellwether.adapters.kubernetes.objects.undo_record_store import SHARDS, ConfigMapRecords
from bellwether.ports.errors import Terminal
from testkit.kubernetes.memory_api import MemoryApi

NAME = "bellwether-undo-main"


@pytest.fixture
def api() -> MemoryApi:
    api = MemoryApi()
    ConfigMapRecords(api, "kafka", "main").take_over("the-cluster")
    return api


@pytest.mark.parametrize("epoch", ["9" * 5000, "²", "-1", "", "many"])
def test_an_epoch_that_is_no_number_is_named(api: MemoryApi, epoch: str):
    api.merge(CONFIG_MAPS, "kafka", f"{NAME}.3", {"data": {"epoch": epoch}})
    with pytest.raises(Terminal, match=rf"configmap kafka/{NAME}\.3: the epoch .{{2,50}} is not a number"):
        ConfigMapRecords(api, "kafka", "main").read()


def test_only_the_shards_that_the_operator_makes_are_read(api: MemoryApi):
    labels = api.get(CONFIG_MAPS, "kafka", f"{NAME}.0")["metadata"]["labels"]
    for number in (SHARDS, "x"):
        api.put(
            CONFIG_MAPS,
            {
                "metadata": {"name": f"{NAME}.{number}", "namespace": "kafka", "labels": labels},
                "binaryData": {"entries": "bm9uc2Vuc2U="},
            },
        )
    found = ConfigMapRecords(api, "kafka", "main").read()
    assert found is not None
    assert found.cluster_id == "the-cluster"
