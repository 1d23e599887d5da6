"""Any names and any directories: nothing is booked on, or done to, a broker that the measured thing does not name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bellwether.adapters.files.meta_properties import LogDirIdentity, read_broker, read_log_dir, replaced
from bellwether.core.quarantine.agent import ProcessState
from bellwether.ports.errors import Terminal, Transient
from bellwether.probes.storage.disk_write import DiskWriter
from bellwether.quarantine.broker_process import BrokerProcess
from testkit.kafka.formatted_directories import formatted

BROKERS = st.integers(0, 4)
# A set and a number that is the id of another broker, of none, or of this one; the directory may be named after it.
PODS = st.builds("{}-{}".format, st.sampled_from(["kafka", "kafka-broker", "kafka-controller"]), BROKERS)
EVENTS = st.tuples(st.sampled_from(["write", "write", "format", "swap", "wipe", "restart"]), BROKERS)


class Prober:
    """The storage prober from a directory to what it books, without its threads; it restarts when it has ended."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.booked = directory, list[int]()
        self.start()

    def start(self) -> None:
        self.writer = DiskWriter(self.directory)
        try:
            self.identity: LogDirIdentity | None = read_log_dir(self.directory)
        except (Transient, Terminal):
            self.identity = None

    def write(self) -> None:
        """One append; booked, unless the check after it says that the directory is another one."""
        if self.identity is None:
            self.start()
        if self.identity is None:
            return
        with suppress(FileNotFoundError):  # evidence against a disk, if it is booked
            self.writer.append()
        if replaced(self.identity):
            self.identity = None
        else:
            self.booked.append(self.identity.broker)


@given(PODS, BROKERS, st.lists(EVENTS, max_size=12))
def test_measurement_is_booked_on_broker_that_directory_names(
    pod: str, first: int, events: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory, away = Path(folder) / pod, 0
        formatted(directory, first, directory_id=f"d{first}")
        prober, truth = Prober(directory), list[int | None]()
        named: int | None = first
        for event, broker in events:
            match event:
                case "write":
                    before = len(prober.booked)
                    prober.write()
                    truth += [named] * (len(prober.booked) - before)
                case "format":
                    formatted(directory, broker, directory_id=f"d{broker}")
                    named = broker
                case "swap":  # another volume at the same path; the old one is still open in the prober
                    directory.rename(Path(folder) / f"away-{away}")
                    formatted(directory, broker, directory_id=f"d{broker}")
                    away, named = away + 1, broker
                case "wipe":
                    (directory / "meta.properties").unlink(missing_ok=True)
                    named = None
                case "restart":
                    prober.start()
        assert prober.booked == truth
        prober.writer.remove()


@contextmanager
def process_with(directories: list[int | None]) -> Iterator[BrokerProcess]:
    """This process, as if it had these log directories open: formatted for a broker, or not."""
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "proc" / str(os.getpid())
        (own / "fd").mkdir(parents=True)
        (own / "stat").write_text(Path("/proc/self/stat").read_text().replace(") T ", ") S "))
        (own / "root").symlink_to(Path(folder) / "root")
        for number, broker in enumerate(directories):
            (own / "fd" / str(number)).symlink_to(f"/data-{number}/.lock")
            inside = Path(folder) / "root" / f"data-{number}"
            inside.mkdir(parents=True)
            if broker is not None:
                formatted(inside, broker)
        yield BrokerProcess(os.getpid(), proc=Path(folder) / "proc")


@given(st.lists(st.none() | BROKERS, max_size=3), BROKERS)
def test_order_holds_only_process_whose_directories_all_name_its_broker(
    directories: list[int | None], ordered: int
) -> None:
    with process_with(directories) as process:
        process.expect(ordered)
        proven = {one for one in directories if one is not None} == {ordered}
        assert process.state() is (ProcessState.RUNNING if proven else ProcessState.UNPROVEN)


@given(st.lists(st.none() | BROKERS, min_size=1, max_size=4))
def test_several_directories_name_one_broker_or_none(brokers: list[int | None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / str(number) for number in range(len(brokers))]
        for path, broker in zip(paths, brokers, strict=True):
            if broker is not None:
                formatted(path, broker)
        stated = {one for one in brokers if one is not None}
        try:
            assert {read_broker(paths).broker} == stated
        except Transient:
            assert not stated
        except Terminal:
            assert len(stated) > 1
