"""Load to move between each pair of brokers: a maximum flow over the pairs with offers.

Dinic's algorithm fills the shortest ways first, so load goes to its new broker directly where it can, and over a third
broker, which then passes other load on, only where it must.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from bellwether_load.planning.blocks import Int64s
from bellwether_load.planning.offers import Pairs

# The solver counts in int32; loads are scaled so that all of them together fit.
_LARGEST = 2**30


def route(offered: Pairs, excess: Int64s, room: Int64s) -> Pairs:
    """The load to send along each pair so that as much excess as possible finds room."""
    count = len(excess)
    unit = max(1, -(-int(excess.sum()) // _LARGEST))
    width = np.minimum(offered.loads // unit, _LARGEST)
    useful = width > 0
    heavy, light = np.flatnonzero(excess // unit > 0), np.flatnonzero(room // unit > 0)
    if not useful.any() or not len(heavy) or not len(light):
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64))
    source, sink = count, count + 1
    tails = np.concatenate([offered.keys[useful] // count, np.full(len(heavy), source), light])
    heads = np.concatenate([offered.keys[useful] % count, heavy, np.full(len(light), sink)])
    widths = np.concatenate([width[useful], excess[heavy] // unit, np.minimum(room[light] // unit, _LARGEST)])
    network = csr_array((widths.astype(np.int32), (tails, heads)), shape=(count + 2, count + 2))
    flow = maximum_flow(network, source, sink, method="dinic").flow.tocoo()
    sent = (flow.data > 0) & (flow.row < count) & (flow.col < count)
    keys = flow.row[sent].astype(np.int64) * count + flow.col[sent]
    order = np.argsort(keys)
    return Pairs(keys[order], flow.data[sent][order].astype(np.int64) * unit)
