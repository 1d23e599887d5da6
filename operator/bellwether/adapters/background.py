"""Runs a task on a thread of its own: ``World.concurrently`` of a process that moves leaders.

Called by the composition roots of the operator and of manual moves.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from bellwether.ports.world import Task


def in_thread(task: Task) -> Task:
    """Start the task; the returned function waits for its end, and raises what it raised."""
    pool = ThreadPoolExecutor(1, "background")
    running = pool.submit(task)
    pool.shutdown(wait=False)
    return running.result
