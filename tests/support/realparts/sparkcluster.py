"""Starts a Spark cluster of several processes: a standalone master and workers, as PySpark brings them.

In: how many workers, and their memory. Out: the master's address for ``--master``. All on 127.0.0.1.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import pyspark

from realparts.ports import HeldPorts
from realparts.processes import ManagedProcess

START_SECONDS = 120


class SparkCluster:
    """A context manager: started on entry, gone on exit. Each worker has one core."""

    def __init__(self, folder: Path, *, workers: int = 2, memory: str = "1200m") -> None:
        self._ports = HeldPorts()
        port = self._ports.take()
        self.master = f"spark://127.0.0.1:{port}"
        home = Path(pyspark.__file__).parent
        launch = home / "bin" / "spark-class"
        environment = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder / "work")}
        address: list[str | Path] = ["--host", "127.0.0.1", "--webui-port", "0"]
        main: list[str | Path] = [launch, "org.apache.spark.deploy.master.Master", *address, "--port", str(port)]
        work: list[str | Path] = [
            launch,
            "org.apache.spark.deploy.worker.Worker",
            *address,
            "--cores",
            "1",
            "--memory",
            memory,
            self.master,
        ]
        self._master = ManagedProcess("spark master", main, log=folder / "master.log", environment=environment)
        self._workers = [
            ManagedProcess(f"spark worker {n}", work, log=folder / f"worker-{n}.log", environment=environment)
            for n in range(workers)
        ]

    def __enter__(self) -> SparkCluster:
        self._master.start()
        _wait(self._master, "New state: ALIVE")
        for worker in self._workers:
            worker.start()
        for worker in self._workers:
            _wait(worker, "Successfully registered with master")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in [*self._workers, self._master]:
            process.stop()
        self._ports.release()

    def kill_worker(self, number: int) -> None:
        """End one worker and its executors as a crash of its machine would."""
        self._workers[number].kill()


def _wait(process: ManagedProcess, ready: str) -> None:
    process.wait_ready(lambda: ready in process.log.read_text(errors="replace"), START_SECONDS)
