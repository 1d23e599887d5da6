"""``bellwether record``: record the inputs and verdicts of a policy in a trace file."""

from __future__ import annotations

import contextlib
import signal
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellwether import __version__
from bellwether.adapters.clocks import SystemClock
from bellwether.cli.kubernetes_target import Target, connect_policy, policy_options
from bellwether.cli.leadership.broker_lookup import find_policy
from bellwether.cli.option_lists import duration
from bellwether.destinations import ANYWHERE
from bellwether.ports.errors import Terminal
from bellwether.recording.traces.anonymization import Anonymity

if TYPE_CHECKING:
    from bellwether.adapters.kafka.reconnecting_reader import RenewedReader
    from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.recording.recorder import Metadata, Recorder, Scope
    from bellwether.recording.trace_files import TraceWriter
    from bellwether.recording.traces.trace_lines import Header

SAY_SECONDS = 10.0
MEGABYTE = 1_000_000


@click.command()
@policy_options
@click.option(
    "--output-file",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Trace file to write, such as incident.jsonl.gz; an existing file is not overwritten.",
)
@click.option(
    "--duration", "limit", metavar="TIME", type=duration, help="Stop after 30s, 10m, 2h.  [default: until Ctrl-C]"
)
@click.option(
    "--period", type=click.FloatRange(0.2, 60), default=1.0, show_default=True, help="Seconds between samples."
)
@click.option("--anonymize", is_flag=True, help="Replace names with digests, and omit free text.")
@click.option("--no-partitions", is_flag=True, help="Omit partitions; a replay then judges but does not plan.")
@click.option(
    "--max-size", type=click.IntRange(1, 100_000), default=500, show_default=True, help="Maximum size in megabytes."
)
def record(
    target: Target,
    output_file: Path,
    limit: timedelta | None,
    period: float,
    anonymize: bool,
    no_partitions: bool,
    max_size: int,
) -> None:
    """Record signals and verdicts for `bellwether replay`.

    Records the signals and overrides of the brokers, the Kafka metadata, and the operator's decisions. Changes nothing.
    Ctrl-C stops the recording.
    """
    from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.recording.recorder import Metadata, Recorder
    from bellwether.recording.trace_files import Full, TraceWriter

    seconds = limit.total_seconds() if limit is not None else float("inf")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    clock = SystemClock()
    with contextlib.ExitStack() as ends:
        api, namespace, policy = connect_policy(target)
        secrets = ends.enter_context(SecretReader(api, namespace, destinations=ANYWHERE))
        found = LeadershipPolicy.read(find_policy(api, namespace, policy))
        reader = cluster_reader(found, secrets)
        metadata = Metadata(reader, clock, reader)
        metadata.read()
        header, scope = opening(found, metadata, clock.now(), anonymize, not no_partitions)
        writer = TraceWriter(output_file, header, max_size * MEGABYTE)
        threading.Thread(target=metadata.follow, args=(stop,), name="metadata", daemon=True).start()
        recorder = Recorder(api, namespace, policy, metadata, writer.write, clock, scope)
        try:
            follow(recorder, writer, stop, seconds, period, Progress())
        except Full as error:
            raise click.ClickException(str(error)) from None
        finally:
            stop.set()
            writer.close()
    samples = "1 sample" if writer.instants == 1 else f"{writer.instants} samples"
    click.echo(f"{samples} in {recorder.seconds:.0f} s written to {output_file} ({size(writer.written)})")


def cluster_reader(policy: LeadershipPolicy, secrets: SecretReader) -> RenewedReader:
    """Reader of the cluster's metadata, with the policy's credentials. Raises Transient or Terminal."""
    from bellwether.adapters.kafka.reconnecting_reader import RenewedReader
    from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection

    return RenewedReader(lambda: connection(policy.spec.kafka, secrets), SystemClock())


def opening(
    policy: LeadershipPolicy, metadata: Metadata, now: datetime, anonymize: bool, partitions: bool
) -> tuple[Header, Scope]:
    """Header and scope of the trace. Terminal if names must be anonymized and the cluster id is unknown."""
    from bellwether.recording.recorder import Scope
    from bellwether.recording.traces.trace_lines import Header

    cluster = metadata.cluster.cluster_id if metadata.cluster is not None else policy.status.cluster_id
    name, namespace = policy.metadata.name, policy.metadata.namespace
    if not anonymize:
        return Header(name, namespace, now, cluster, __version__, partitions=partitions), Scope(partitions)
    if not cluster:
        raise Terminal(f"--anonymize requires the id of the Kafka cluster, which is not reachable: {metadata.trouble}")
    hidden = Anonymity(cluster)
    header = Header(
        hidden.name("policy", name),
        hidden.name("namespace", namespace),
        now,
        hidden.name("cluster", cluster),
        __version__,
        anonymized=True,
        partitions=partitions,
    )
    return header, Scope(partitions, hidden)


def follow(
    recorder: Recorder, writer: TraceWriter, stop: threading.Event, seconds: float, period: float, progress: Progress
) -> None:
    """Take samples until ``stop`` or the time limit. Raises Full."""
    due = recorder.clock.monotonic()
    end = due + seconds
    while not stop.is_set() and recorder.clock.monotonic() < end:
        recorder.look()
        progress.show(recorder, writer)
        due = max(due + period, recorder.clock.monotonic())
        stop.wait(min(due, end) - recorder.clock.monotonic())


class Progress:
    """A line every ``SAY_SECONDS``, and one for each failure and its end."""

    def __init__(self) -> None:
        self._said_at = float("-inf")
        self._trouble: dict[str, str] = {}

    def show(self, recorder: Recorder, writer: TraceWriter) -> None:
        """Print the progress."""
        for what in sorted(recorder.trouble.keys() - self._trouble.keys()):
            click.echo(f"continuing without {what}: {recorder.trouble[what]}", err=True)
        for what in sorted(self._trouble.keys() - recorder.trouble.keys()):
            click.echo(f"{what} is available again", err=True)
        self._trouble = dict(recorder.trouble)
        if recorder.seconds - self._said_at >= SAY_SECONDS:
            self._said_at = recorder.seconds
            taken = f"{recorder.brokers} brokers, {writer.instants} samples, {size(writer.written)}"
            click.echo(f"recording {recorder.seconds:.0f} s: {taken}", err=True)


def size(count: int) -> str:
    """Format a number of bytes."""
    return f"{count / MEGABYTE:.1f} MB" if count >= MEGABYTE else f"{count / 1000:.1f} kB"
