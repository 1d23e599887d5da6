"""Arrays as bytes, to send them through a data frame: one row holds a whole block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Int64s

BLOCK = pa.schema(
    [
        ("block", pa.int32()),
        ("width", pa.int32()),
        ("ids", pa.binary()),
        ("loads", pa.binary()),
        ("eligible", pa.binary()),
        ("home", pa.binary()),
        ("leader", pa.binary()),
    ]
)


def pack(array: NDArray[Any]) -> bytes:
    """An array's bytes, without shape and type."""
    return array.tobytes()


def int64s(data: bytes) -> Int64s:
    """The int64 array of these bytes, read only."""
    return np.frombuffer(data, np.int64)


def block_row(block: Block) -> dict[str, Any]:
    """A block as a row of ``BLOCK``."""
    return {
        "block": block.number,
        "width": block.eligible.shape[1],
        "ids": pack(block.ids),
        "loads": pack(block.loads),
        "eligible": pack(block.eligible),
        "home": pack(block.home),
        "leader": pack(block.leader),
    }


def read_block(row: dict[str, Any], brokers: int) -> Block:
    """The block of a row."""
    return Block(
        row["block"],
        brokers,
        int64s(row["ids"]),
        int64s(row["loads"]),
        np.frombuffer(row["eligible"], np.int32).reshape(-1, row["width"]),
        np.frombuffer(row["home"], np.int32),
        np.frombuffer(row["leader"], np.int32),
    )
