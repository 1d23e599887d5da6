"""The traffic process: two producers, a consumer and a fetch sampler, all through the external listener.

Started by ``traffic`` as ``python -m demo.generator BOOTSTRAP TOPICS PARTITIONS RATE``. Out: one line a finished record
on standard output (``samples``), ``ready`` once every partition holds a record, ``end`` after the last. It ends when
its standard input ends, hence also when the demo dies, after every record in flight was acknowledged or given up.

Load is open loop: a record is due when the clock says so, and its latency counts from then, however late the client is.
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from demo.samples import Kind, Sample, key_of

DELIVERY_TIMEOUT_SECONDS = 30
FETCHES_PER_SECOND = 20.0
WARM_UP_BATCH = 200
WARM_UP_SECONDS = 150  # a busy machine is slow at first
# This client sends one partition a request, and a broker answers the requests of one connection one after the other. So
# acks=all has several clients and a small share: its latency shall be Kafka's, not that of a queue in the client.
ACKS_ALL_SHARE = 0.2
CLIENTS = {Kind.ACKS_1: 1, Kind.ACKS_ALL: 4}
PAYLOAD = b"x" * 200

Name = tuple[str, int]


def rates(per_second: float) -> dict[Kind, float]:
    """Records a second of each kind of producer."""
    return {Kind.ACKS_1: (1 - ACKS_ALL_SHARE) * per_second, Kind.ACKS_ALL: ACKS_ALL_SHARE * per_second}


class Lines:
    """Standard output, shared by the threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        """Write one whole line at once."""
        with self._lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


def producing(bootstrap: str, kind: Kind, timeout_seconds: int = DELIVERY_TIMEOUT_SECONDS) -> Producer:
    """A producer as one would run it in production; acks=all comes with idempotence, as is Kafka's default."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": f"demo-{kind.value}",
            "acks": "all" if kind is Kind.ACKS_ALL else "1",
            "enable.idempotence": kind is Kind.ACKS_ALL,
            "message.timeout.ms": timeout_seconds * 1000,
            "socket.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 1_000,
            "log_level": 0,
        }
    )


def consuming(bootstrap: str, name: str, **settings: object) -> Consumer:
    """A consumer that waits briefly for new records, so that its own waiting does not drown what is measured."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": name,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": 1_000,
            "log_level": 0,
            **settings,
        }
    )


def warm_up(bootstrap: str, partitions: Sequence[Name]) -> None:
    """Put one record into every partition, not too many at once. Raises RuntimeError when one was not delivered."""
    producer = producing(bootstrap, Kind.ACKS_1, WARM_UP_SECONDS)
    for begin in range(0, len(partitions), WARM_UP_BATCH):
        _fill(producer, partitions[begin : begin + WARM_UP_BATCH])


def _fill(producer: Producer, partitions: Sequence[Name]) -> None:
    problems: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            problems.append(f"{message.topic()}-{message.partition()}: {error.str()}")

    for topic, partition in partitions:
        producer.produce(topic, PAYLOAD, b"warm-up", partition, on_delivery=delivered)
    left = producer.flush(WARM_UP_SECONDS + 5)
    if problems or left:
        raise RuntimeError(f"{len(problems) + left} partitions took no first record, as {problems[:3]}")


class Producing:
    """Sends one record after the other, partition by partition, and reports each when it is done."""

    def __init__(self, bootstrap: str, kind: Kind, partitions: Sequence[Name], lines: Lines) -> None:
        self._producer = producing(bootstrap, kind)
        self._kind = kind
        self._partitions = partitions
        self._lines = lines

    def run(self, sequences: Iterable[int], shift: int, per_second: float, stop: threading.Event) -> None:
        """Send until stopped, then wait for what is in flight.

        Record n is due n / ``per_second`` after the start; ``sequences`` are those of this client, ``shift`` is where
        in the round of partitions it begins.
        """
        started = time.monotonic()
        for sequence in sequences:
            due = started + sequence / per_second
            while (left := due - time.monotonic()) > 0 and not stop.is_set():
                self._producer.poll(min(left, 0.2))
            if stop.is_set():
                break
            topic, partition = self._partitions[(shift + sequence) % len(self._partitions)]
            self._send(topic, partition, sequence, due)
        self._producer.flush(DELIVERY_TIMEOUT_SECONDS + 5)

    def _send(self, topic: str, partition: int, sequence: int, due: float) -> None:
        def done(error: KafkaError | None, _: Message) -> None:
            words = "" if error is None else str(error.name())
            self._lines.write(Sample(self._kind, topic, partition, sequence, due, time.monotonic(), words).to_line())

        value = f"{due:.6f} ".encode() + PAYLOAD
        try:
            self._producer.produce(topic, value, key_of(self._kind, sequence), partition, on_delivery=done)
        except BufferError:
            self._lines.write(
                Sample(self._kind, topic, partition, sequence, due, time.monotonic(), "_QUEUE_FULL").to_line()
            )


def consume(bootstrap: str, topics: Sequence[str], lines: Lines, stop: threading.Event) -> None:
    """Read everything as a consumer group would; report from a record's due time to its arrival here."""
    consumer = consuming(bootstrap, "demo-consumer", **{"fetch.wait.max.ms": 100, "statistics.interval.ms": 0})
    consumer.subscribe(list(topics))
    count = itertools.count()
    while not stop.is_set():
        for message in consumer.consume(num_messages=100, timeout=0.2):
            key = message.key() or b""
            if message.error() is not None or key == b"warm-up":
                continue
            due = float((message.value() or b"0").split(b" ", 1)[0])
            sample = Sample(Kind.END_TO_END, message.topic(), message.partition(), next(count), due, time.monotonic())
            lines.write(sample.to_line())
    consumer.close()


def fetch(bootstrap: str, partitions: Sequence[Name], lines: Lines, stop: threading.Event) -> None:
    """Ask one partition after the other for its first record, which is there: what a read costs, and nothing else.

    Many may be waited for at once, so a broker that does not answer does not hide the others. One partition of each
    topic stays assigned: a client without any asks for the topic's metadata first, and any broker may be asked.
    """
    known = {topic: TopicPartition(topic, partition, 0) for topic, partition in reversed(partitions)}
    partitions = [name for name in partitions if known[name[0]].partition != name[1]]
    consumer = consuming(bootstrap, "demo-fetch", **{"fetch.wait.max.ms": 10, "enable.auto.commit": False})
    consumer.assign(list(known.values()))
    consumer.pause(list(known.values()))
    waiting: dict[Name, tuple[int, float]] = {}
    started = time.monotonic()
    sequence = 0
    while not stop.is_set():
        due = started + sequence / FETCHES_PER_SECOND
        message = consumer.poll(max(0.0, min(due - time.monotonic(), 0.2)))
        now = time.monotonic()
        if message is not None and message.error() is None:
            _finish(consumer, waiting, (message.topic(), message.partition()), now, "", lines)
        for name in [n for n, (_, asked) in waiting.items() if now - asked > DELIVERY_TIMEOUT_SECONDS]:
            _finish(consumer, waiting, name, now, "_TIMED_OUT", lines)
        if now >= due:
            name = partitions[sequence % len(partitions)]
            if name not in waiting:
                waiting[name] = (sequence, due)
                consumer.incremental_assign([TopicPartition(*name, 0)])
            sequence += 1
    for name in list(waiting):
        _finish(consumer, waiting, name, time.monotonic(), "_STOPPED", lines)
    consumer.close()


def _finish(
    consumer: Consumer, waiting: dict[Name, tuple[int, float]], name: Name, now: float, error: str, lines: Lines
) -> None:
    if name in waiting:
        sequence, due = waiting.pop(name)
        consumer.incremental_unassign([TopicPartition(*name)])
        if error != "_STOPPED":
            lines.write(Sample(Kind.FETCH, *name, sequence, due, now, error).to_line())


def main() -> None:
    """Run until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C reaches the demo, which then closes our input
    bootstrap, topics, count, rate = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), float(sys.argv[4])
    partitions = [(topic, partition) for partition in range(count // len(topics)) for topic in topics]
    lines, stop, consumers_stop = Lines(), threading.Event(), threading.Event()
    try:
        warm_up(bootstrap, partitions)
    except (RuntimeError, KafkaException) as problem:
        sys.exit(f"the traffic cannot start: {problem}")
    lines.write("ready")

    def thread(target: Callable[..., None], *arguments: object) -> threading.Thread:
        started = threading.Thread(target=target, args=arguments, daemon=True)
        started.start()
        return started

    senders = []
    for kind, per_second in rates(rate).items():
        shift = len(partitions) // 2 if kind is Kind.ACKS_ALL else 0
        for number in range(CLIENTS[kind]):
            client = Producing(bootstrap, kind, partitions, lines)
            senders.append(thread(client.run, itertools.count(number, CLIENTS[kind]), shift, per_second, stop))
    readers = [
        thread(consume, bootstrap, topics, lines, consumers_stop),
        thread(fetch, bootstrap, partitions, lines, consumers_stop),
    ]
    sys.stdin.read()
    stop.set()
    for sender in senders:
        sender.join()
    consumers_stop.set()
    for reader in readers:
        reader.join(10)
    lines.write("end")


if __name__ == "__main__":
    main()
