"""The job as people start it, also through spark-submit, and on Spark standalone, where workers and jobs are killed.

Standalone has a master and two workers of 512 MB each; the histories are dirty. Rollups and loads must be those of one
process with numpy. Each test starts a JVM: slow.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyspark
import pytest

from bellwether_load.jobs import loads
from bellwether_load.jobs.engines import ProcessEngine
from bellwether_load.store.filesystems import Store
from sourcetree import ROOT
from testkit.loads.load_histories import MIDNIGHT, deleted, led, steady
from testkit.loads.sample_files import write_rounds
from waiting import limit, ran, until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OUR_LINE = re.compile(r" *\d+\.\d s  .*")
# Of each kind of task the first one that has written its file waits for the loss of its worker, or of the job.
JOB = """
import os, sys, time
from datetime import UTC, datetime
from pathlib import Path
from bellwether_load.jobs.engines import SparkEngine
from bellwether_load.jobs import loads
from bellwether_load.jobs.sessions import session

master, uri, now, cores, folder = sys.argv[1:]

def worker():
    process = os.getpid()
    while b"deploy.worker.Worker" not in Path(f"/proc/{process}/cmdline").read_bytes():
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return process

class Observed(SparkEngine):
    def run(self, work, tasks):
        def observed(task):
            done = work(task)
            with Path(folder, "done").open("a") as file:
                file.write(work.func.__name__ + "\\n")
            try:
                with Path(folder, work.func.__name__).open("x") as file:
                    file.write(f"{worker()}\\n")
            except FileExistsError:
                return done
            time.sleep(300)
        return super().run(observed, tasks)

settings = {"spark.cores.max": cores, "spark.executor.memory": "512m", "spark.ui.enabled": "false"}
settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
with session("test", master=master, memory="512m", settings=settings) as spark:
    loads.run(Observed(spark), uri, "week", loads.DAYS, datetime.fromisoformat(now), print)
"""
NOW = datetime.fromtimestamp(MIDNIGHT + 5 * 3600, UTC)
HOURS = 4


def ended(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in an empty directory, with the Python of these tests first on the path."""
    directory.mkdir(exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    return ran(command, 240, cwd=directory, env=environment)


@pytest.fixture
def history(tmp_path: Path) -> Store:
    store = Store.open(str(tmp_path / "store"))
    write_rounds(store, {("apples", n): steady(10, messages=100 * n) for n in range(5)})
    return store


def test_the_module_and_spark_submit_write_the_same(history: Store, tmp_path: Path):
    asked = ("--store", str(history))
    module = ended(tmp_path / "one", sys.executable, "-m", "bellwether_load", "loads", *asked, "--name", "module")
    assert (module.returncode, module.stdout) == (0, "loads/module\n"), module.stderr
    submit = str(Path(sys.executable).parent / "spark-submit")
    script = str(ROOT / "spark" / "submit.py")
    submitted = ended(tmp_path / "two", submit, "--master", "local[2]", script, "loads", *asked, "--name", "submitted")
    assert submitted.returncode == 0, submitted.stderr
    assert submitted.stdout.endswith("loads/submitted\n")
    one, other = (history.read_bytes(f"loads/{name}/part-00000.parquet") for name in ("module", "submitted"))
    assert one == other
    # Nothing is left behind where it was started, and it says no more than is of use.
    assert list((tmp_path / "one").iterdir()) == []
    others = [line for line in module.stderr.splitlines() if not OUR_LINE.fullmatch(line)]
    assert others == ["WARNING: Using incubator modules: jdk.incubator.vector"]


def test_a_relative_store_is_meant_from_where_the_job_is_started(history: Store, tmp_path: Path):
    done = ended(tmp_path, sys.executable, "-m", "bellwether_load", "loads", "--store", "store", "--name", "here")
    assert done.returncode == 0, done.stderr
    assert history.exists("loads/here/part-00000.parquet")


class Cluster:
    """A master, and workers of one core."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.master = ""
        self.master = self._start("master.Master", "--port", "0", said="spark://127.0.0.1:").split()[-1]
        self.add_worker()
        self.add_worker()

    def add_worker(self) -> None:
        """Start one, until it is registered."""
        options = ("--cores", "1", "--memory", "512M", "--work-dir", str(self._folder), self.master)
        self._start("worker.Worker", *options, said="Successfully registered")

    def kill(self, process: int) -> None:
        """Kill a worker; its executor ends with it."""
        self.processes.pop(process).send_signal(signal.SIGKILL)

    def _start(self, name: str, *options: str, said: str) -> str:
        home, log = Path(pyspark.__file__).parent, self._folder / f"{len(list(self._folder.iterdir()))}.log"
        java = "-Dspark.master.rest.enabled=false -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        python = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
        environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m", "PYTHONPATH": python}
        environment |= {"SPARK_DAEMON_JAVA_OPTS": java, "SPARK_LOCAL_IP": "127.0.0.1"}
        command = [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*command, "--webui-port", "0", *options], stdout=file, stderr=file, env=environment
            )
        self.processes[process.pid] = process
        lines = until(lambda: [line for line in log.read_text().splitlines() if said in line], 60, seen=log.read_text)
        return lines[0]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("spark"))
    yield found
    for process in found.processes.values():
        process.kill()
        process.wait()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Of two samplers: gaps, a log that was cut, another leader, ends that go back, a recreated topic, broken files."""
    found = Store.open(str(tmp_path / "store"))
    one = {
        ("apples", 0): [s for s in steady(200) if not 40 <= s.at // 60 < 90],
        ("apples", 1): deleted(steady(90), 20, size=10**4),
        ("pears", 0): led(steady(200, messages=60, each=9), 70, leader=2, larger=10**6),
        ("plums", 0): [replace(s, end=-7 if s.at == 600 else s.end) for s in steady(200)],
        ("plums", 1): [*steady(150), *(replace(s, at=s.at + 9000) for s in steady(30))],
    }
    broken = write_rounds(found, one)[5]
    write_rounds(found, {key: [replace(s, at=s.at + 13) for s in history] for key, history in one.items()})
    found.write_bytes(broken, found.read_bytes(broken)[:-20])
    found.write_bytes("samples/notes.parquet", b"not ours")
    return found


def started(cluster: Cluster, store: Store, folder: Path, cores: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", JOB, cluster.master, str(store), NOW.isoformat(), str(cores), str(folder)]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def waiting(folder: Path, task: str) -> int:
    """The process id of the worker whose task of this kind waits."""

    def said() -> str:
        return (folder / task).read_text() if (folder / task).exists() else ""

    return int(until(lambda: said().endswith("\n") and said(), 120, seen=(folder / "log").read_text))


def contents(store: Store) -> dict[str, bytes]:
    files = [file.path for folder in ("rollups", "loads") for file in store.list(folder)]
    return {path: store.read_bytes(path) for path in (*files, "loads/week/_loads.json")}


def alone(store: Store) -> dict[str, bytes]:
    """What one process with numpy makes of the same samples."""
    store.delete_directory("rollups")
    store.delete_directory("loads")
    loads.run(ProcessEngine(), str(store), "week", loads.DAYS, NOW, lambda _: None)
    return contents(store)


def test_the_loss_of_workers_does_not_change_rollups_or_loads(cluster: Cluster, store: Store, tmp_path: Path) -> None:
    job = started(cluster, store, tmp_path, cores=2)
    for task in ("roll_hour", "write_part"):
        cluster.kill(waiting(tmp_path, task))
        cluster.add_worker()
    assert job.wait(limit(240)) == 0, (tmp_path / "log").read_text()[-3000:]
    done = Counter((tmp_path / "done").read_text().split())
    assert done == {"roll_hour": HOURS + 1, "write_part": 2}, "what was lost had been written, and was written again"
    found = contents(store)
    assert found == alone(store)
    assert len(found) == HOURS + 2


def test_a_killed_job_and_two_at_once_with_late_samples_write_the_same(
    cluster: Cluster, store: Store, tmp_path: Path
) -> None:
    late = [file.path for file in store.list("samples")][30:80]
    held_back = {path: store.read_bytes(path) for path in late}
    for path in late:
        store.delete(path)
    killed = started(cluster, store, tmp_path, cores=2)
    waiting(tmp_path, "roll_hour")
    killed.kill()
    killed.wait()
    for path, data in held_back.items():
        store.write_bytes(path, data)
    (tmp_path / "write_part").touch()  # no task waits any more
    jobs = [started(cluster, store, tmp_path, cores=1) for _ in range(2)]
    assert [job.wait(limit(240)) for job in jobs] == [0, 0], (tmp_path / "log").read_text()[-3000:]
    found = contents(store)
    assert found == alone(store)
    assert len(found) == HOURS + 2
