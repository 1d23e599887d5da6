"""Kafka behind the ports. Which library does what, and why, with figures: docs/decisions/0031.

Requests of the operator, the probers and the sampler go to a broker of our choice on our own connections, within one
deadline and without retries (``transport``, ``broker_connection``, ``broker_pool``); kafka-python encodes and decodes
their messages and computes SCRAM proofs, nothing else of it is used. The canary produces
and fetches through confluent-kafka.

kafka-python's root package imports its consumer, producer and admin client, which nothing here uses: half of the time
until a command can send its first request. So its protocol is imported without them, before any module of ours does.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_DEFERRED = ("kafka", "kafka.net", "kafka.protocol.admin")
"""Packages whose own code imports all clients, or all messages of a kind."""


def without_clients() -> None:
    """Let these packages run their own code only when something of it is used, as ``kafka.KafkaConsumer`` would be."""
    for name in _DEFERRED:
        if name not in sys.modules and (spec := find_spec(name)) is not None:
            package = sys.modules[name] = _deferred(module_from_spec(spec))
            if "." in name:  # as the import system does once a module is loaded
                parent, _, child = name.rpartition(".")
                setattr(sys.modules[parent], child, package)


def _deferred(package: ModuleType) -> ModuleType:
    def load(name: str) -> Any:
        spec = package.__spec__
        if vars(package).pop("__getattr__", None) is not None and spec is not None and spec.loader is not None:
            spec.loader.exec_module(package)
        return getattr(package, name)

    vars(package)["__getattr__"] = load  # PEP 562
    return package


without_clients()
