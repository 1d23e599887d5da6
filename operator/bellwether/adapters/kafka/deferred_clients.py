"""Import kafka-python's protocol classes without its three clients, which its root package imports at once.

Bellwether encodes and decodes with the protocol classes alone, and the clients are a quarter of the time in which
``bellwether demote --record`` starts. Called by ``adapters.kafka`` before any import of ``kafka``.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from typing import Any


def defer_clients() -> None:
    """Register ``kafka`` uninitialised: the first use of one of its attributes, as by a client, initialises it.

    Does nothing where ``kafka`` was imported before, or is not installed.
    """
    if "kafka" in sys.modules or (spec := find_spec("kafka")) is None or spec.loader is None:
        return
    root, loader = module_from_spec(spec), spec.loader

    def initialise(name: str) -> Any:
        if name.startswith("__"):  # asked by the import system and by debuggers
            raise AttributeError(f"module 'kafka' has no attribute {name!r}")
        vars(root).pop("__getattr__", None)
        loader.exec_module(root)
        return getattr(root, name)

    vars(root)["__getattr__"] = initialise  # PEP 562
    sys.modules["kafka"] = root
