"""Lots: which tests run in one process where several processes run them side by side.

In: a test's id. Out: the name of its lot, by the folder that it lies in. Tests of a lot share clusters that start
slowly. Called by ``tests/conftest.py``. (pytest-xdist's own groups hang on ids of tests that pytest no longer lets
anyone change.)
"""

from __future__ import annotations

# Three clusters of three brokers, in processes of their own: together their tests would take too long.
THREE_BROKERS, THREE_MORE, THREE_PROBED = "three brokers", "three more brokers", "three probed brokers"
FOUR_BROKERS = "four brokers"
SIX_BROKERS, SPARK = "six brokers", "spark"
LOTS = {
    "integration/operator": THREE_BROKERS,
    "integration/brokers": THREE_PROBED,
    "integration/parts": THREE_PROBED,
    "integration/probes": THREE_PROBED,
    "integration/load": THREE_MORE,
    "integration/alerts": THREE_MORE,
    "integration/rights": THREE_MORE,
    "integration/runbooks": THREE_MORE,
    "integration/moving": FOUR_BROKERS,
    "contract": FOUR_BROKERS,
    "integration/doctor": FOUR_BROKERS,
    "integration/placement": SIX_BROKERS,
    "spark": SPARK,
}
LONGEST_FIRST = (THREE_BROKERS, FOUR_BROKERS, THREE_PROBED, SPARK, THREE_MORE)
REAL_PARTS = ("integration/", "contract", "spark", "e2e")


def lot_of(test: str) -> str:
    """The lot of the test of that id, such as ``tests/contract/test_x.py::test_y``: its folder's, or its file
    alone where it shares nothing.
    """
    file = test.partition("::")[0].removeprefix("tests/")
    folder = file.rpartition("/")[0]
    return LOTS.get(folder, folder if folder.startswith(REAL_PARTS) else file)


def begins(test: str) -> int:
    """How early a test's lot begins: the longest first, and what needs no real part last, while others wait."""
    lot = lot_of(test)
    if lot in LONGEST_FIRST:
        return LONGEST_FIRST.index(lot)
    return len(LONGEST_FIRST) + (not needs_real_parts(test))


def begins_in_shard(test: str, own: bool) -> tuple[bool, bool]:
    """How early a test of a shard's ``own`` files, or of those that changed, begins. What changed comes later: where
    time ends early, another shard's run reaches other tests. What needs no real part still comes last: when the first
    such test begins, a process ends its parts.
    """
    return not needs_real_parts(test), not own


def needs_real_parts(test: str) -> bool:
    """Whether a test's lot may start real parts."""
    lot = lot_of(test)
    return lot.startswith(REAL_PARTS) or lot in LOTS.values()
