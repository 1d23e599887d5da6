"""Lots: which tests run in one process where several processes run them side by side.

In: a test's id. Out: the name of its lot, by the folder that it lies in. Tests of a lot share clusters that are dear to
start. Called by ``tests/conftest.py``. (pytest-xdist's own groups hang on ids of tests that pytest no longer lets
anybody change.)
"""

from __future__ import annotations

# The same work as that of three brokers, in another process and on another cluster: together it would take too long.
THREE_BROKERS, THREE_MORE, FOUR_BROKERS = "three brokers", "three more brokers", "four brokers"
SIX_BROKERS = "six brokers"
LOTS = {
    "operator": THREE_BROKERS,
    "brokers": THREE_BROKERS,
    "parts": THREE_BROKERS,
    "probes": THREE_BROKERS,
    "load": THREE_MORE,
    "alerts": THREE_MORE,
    "rights": THREE_MORE,
    "moving": FOUR_BROKERS,
    "contract": FOUR_BROKERS,
    "doctor": FOUR_BROKERS,
    "placement": SIX_BROKERS,
}
LONGEST_FIRST = (THREE_BROKERS, THREE_MORE, FOUR_BROKERS)


def lot_of(test: str) -> str:
    """The lot of the test of that id, such as ``tests/contract/test_four_brokers.py::test_x``."""
    folder = test.partition("::")[0].rpartition("/")[0].rpartition("/")[2]
    return LOTS.get(folder, folder)


def begins(test: str) -> int:
    """How early a test's lot begins: the longest first, so that the others fill the time beside it."""
    lot = lot_of(test)
    return LONGEST_FIRST.index(lot) if lot in LONGEST_FIRST else len(LONGEST_FIRST)
