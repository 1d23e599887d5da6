"""Decode Metadata, and only the topics that changed since the last answer. Called by ``metadata_reader``.

In: the frame of a Metadata response of version 10 to 13, and the last answer. Out: brokers and partitions. A topic with
the same bytes keeps its partitions, and an answer that differs from the last one only in the throttle time, the order,
and the controller, for which KRaft names a random broker, is the last one: comparing 8.5 MB takes 3 ms, decoding them
seconds.

Time and memory are linear in the frame, whatever the peer sends: every element of an array takes bytes of the frame,
and nothing is allocated for a length before its bytes are there.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter, is_

from bellwether.adapters.kafka.connection.connection_errors import LEADER_NOT_AVAILABLE, NONE, REPLICA_NOT_AVAILABLE
from bellwether.adapters.kafka.connection.response_decoding import LARGEST_LIMIT, TooMany
from bellwether.core.model.cluster import Broker, Partition

_PARTITION = struct.Struct(">hiii")
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_LONGEST_VARINT = 5
_MOST_REPLICAS = 32
"""Of one partition: ten times what clusters have. What is compared for each pair of replicas stays small."""
_LONGEST_NAME = 255
"""Of hosts (253), topics (249), racks and clusters: they appear in status, logs and terminals."""
_LEADER_AS_SAID = frozenset({NONE, LEADER_NOT_AVAILABLE, REPLICA_NOT_AVAILABLE})
# Any other code leaves the leader unknown: LISTENER_NOT_FOUND is a leader without the listener that was asked.


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One topic; ``partitions`` are in their order, without reassignments and ELR.

    ``short``: a partition has replicas outside the ISR.
    """

    name: str
    error_code: int
    partitions: tuple[Partition, ...]
    short: bool


@dataclass(frozen=True, eq=False, slots=True)
class Metadata:
    """One answer; ``topics`` are in the order of their names."""

    cluster_id: str
    brokers: tuple[Broker, ...]
    topics: tuple[TopicMetadata, ...]
    error_code: int
    _frame: bytes = field(repr=False)
    _volatile: tuple[int, int] = field(repr=False)
    """Positions of the throttle time and of the controller in the frame, four bytes each."""
    _places: dict[str, tuple[int, int, TopicMetadata]] = field(repr=False)
    """Begin and end of each topic in the frame."""

    @property
    def throttle_time_ms(self) -> int:
        """How long Kafka delayed the next request after this answer, or after an equal one before."""
        found: int = _INT32.unpack_from(self._frame, self._volatile[0])[0]
        return found

    @property
    def size(self) -> int:
        """Bytes of the answer."""
        return len(self._frame)

    @property
    def short_topics(self) -> tuple[str, ...]:
        """Names of the topics that have replicas outside the ISR."""
        return tuple(topic.name for topic in self.topics if topic.short)

    def same(self, other: Metadata) -> bool:
        """Whether both say the same, in whatever order; topics are the same objects then."""
        about = (self.cluster_id, self.brokers, self.error_code, len(self.topics))
        unchanged = about == (other.cluster_id, other.brokers, other.error_code, len(other.topics))
        return unchanged and all(map(is_, self.topics, other.topics))

    def repeated_by(self, frame: bytearray) -> bool:
        """Whether a frame says the same. All other bytes are equal, so the fields are the same."""
        if len(frame) != len(self._frame):
            return False
        # No copy is made of a part of the frame: that would take longer than all the rest.
        places = [slice(position, position + 4) for position in self._volatile]
        values = [frame[place] for place in places]
        for place in places:
            frame[place] = self._frame[place]
        same = frame == self._frame
        for place, value in zip(places, values, strict=True):
            frame[place] = value
        return same


def decode_metadata(
    received: bytearray, version: int, last: Metadata | None = None, most: int = LARGEST_LIMIT
) -> Metadata:
    """The answer in a frame, which begins with its header; ``last`` itself where it says the same.

    Raises ValueError, IndexError or struct.error for what is no such answer, or has more than ``most`` topics and
    partitions: each is an object of ours, however few bytes it has.
    """
    if last is not None and last.repeated_by(received):
        return last
    frame = bytes(received)
    throttle_at = at = _after_tags(frame, 4)  # a correlation id comes first
    count, at = _varint(frame, at + 4)
    brokers = []
    for _ in range(count - 1):
        (node,) = _INT32.unpack_from(frame, at)
        host, at = _string(frame, at + 4)
        (port,) = _INT32.unpack_from(frame, at)
        rack, at = _string(frame, at + 4)
        at = _after_tags(frame, at)
        brokers.append(Broker(node, rack, host or "", port))
    cluster_id, controller_at = _string(frame, at)
    count, at = _varint(frame, controller_at + 4)
    known = last._places if last is not None else {}
    seen = last._frame if last is not None else b""
    ids = _Ids()
    places = {}
    left = most
    for _ in range(count - 1):
        name, after_name = _string(frame, at + 2)
        begin, end, topic = known.get(name or "", (0, 0, None))
        if topic is None or frame[at : at + end - begin] != seen[begin:end]:
            topic, following = _topic(frame, at, name or "", after_name, ids)
        else:
            following = at + end - begin
        left -= 1 + len(topic.partitions)
        if left < 0:
            raise TooMany(
                f"names more than {most:,} topics and partitions: check that it is a broker of the intended Kafka"
                " cluster, and for a larger cluster raise --metadata-limit"
            )
        if topic.name in places:
            raise ValueError(f"topic {topic.name} twice")
        places[topic.name] = at, following, topic
        at = following
    if version == 10:
        at += 4  # cluster_authorized_operations
    error_code = _INT16.unpack_from(frame, at)[0] if version >= 13 else 0
    if _after_tags(frame, at + 2 * (version >= 13)) > len(frame):
        raise ValueError("the answer ends too early")
    topics = tuple(topic for _, (_, _, topic) in sorted(places.items()))
    brokers.sort(key=attrgetter("id"))
    found = Metadata(cluster_id or "", tuple(brokers), topics, error_code, frame, (throttle_at, controller_at), places)
    return last if last is not None and last.same(found) else found


def topic_id(raw: bytes) -> str:
    """A topic id as Kafka's own tools print it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def _topic(frame: bytes, at: int, name: str, after_name: int, ids: _Ids) -> tuple[TopicMetadata, int]:
    """The topic that begins at ``at``, and the position after it."""
    (error_code,) = _INT16.unpack_from(frame, at)
    at = after_name + 16
    identity, internal = topic_id(frame[after_name:at]), frame[at] != 0
    count, at = _varint(frame, at + 1)
    found, at = _alike(frame, at, count - 1, ids) or _each(frame, at, count - 1, ids)
    partitions = [
        Partition(
            name,
            identity,
            index,
            replicas,
            isr,
            leader if leader >= 0 and code in _LEADER_AS_SAID else None,
            leader_epoch,
            internal=internal,
            leader_unknown=code not in _LEADER_AS_SAID,
            offline=offline,
        )
        for code, index, leader, leader_epoch, replicas, isr, offline in found
    ]
    at = _after_tags(frame, at + 4)  # topic_authorized_operations come first
    partitions.sort(key=attrgetter("index"))
    short = any(len(p.isr) < len(p.replicas) for p in partitions)
    return TopicMetadata(name, error_code, tuple(partitions), short), at


class _Ids(dict[bytes, tuple[int, ...]]):
    """Arrays of broker ids by their bytes: one tuple for all that are equal."""

    def __missing__(self, raw: bytes) -> tuple[int, ...]:
        if len(raw) > 4 * _MOST_REPLICAS:
            raise TooMany(f"names a partition with {len(raw) // 4:,} replicas; at most {_MOST_REPLICAS} are read")
        found = self[raw] = struct.unpack(f">{len(raw) // 4}i", raw)
        return found

    def at(self, frame: bytes, at: int) -> tuple[tuple[int, ...], int]:
        """The array that begins at ``at``, and the position after it."""
        count, at = _varint(frame, at)
        end = at + 4 * (count - 1)
        if not count or end > len(frame):
            raise ValueError("an array of brokers that is null or ends too early")
        return self[frame[at:end]], end


_Fields = tuple[int, int, int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Of one partition: its error code, index, leader, leader epoch, replicas, ISR and offline replicas."""


def _each(frame: bytes, at: int, count: int, ids: _Ids) -> tuple[Iterable[_Fields], int]:
    """The partitions that begin at ``at``, one after the other, and the position after them."""
    found = []
    for _ in range(count):
        code, index, leader, leader_epoch = _PARTITION.unpack_from(frame, at)
        replicas, at = ids.at(frame, at + 14)
        isr, at = ids.at(frame, at)
        offline, at = ids.at(frame, at)
        at = _after_tags(frame, at)
        found.append((code, index, leader, leader_epoch, replicas, isr, offline))
    return found, at


def _alike(frame: bytes, at: int, count: int, ids: _Ids) -> tuple[Iterable[_Fields], int] | None:
    """The same, twice as fast, where all partitions of a topic have equally many replicas, none offline, and no error.

    Each has as many bytes then, so that the lengths of its arrays are found at equal distances. None if they are not.
    """
    head = frame[at + 14 : at + 15]
    after = at + 15 + 4 * (head[0] - 1) if head else at
    lengths = (head, frame[after : after + 1])
    if count < 2 or any(not len(one) > 0 or not 0 < one[0] < 0x80 for one in lengths):
        return None
    replicas, in_sync = (4 * (one[0] - 1) for one in lengths)
    layout = struct.Struct(f">2x3ix{replicas}sx{in_sync}s2x")
    step, end = layout.size, at + count * layout.size
    places = (0, b"\0"), (1, b"\0"), (14, lengths[0]), (15 + replicas, lengths[1]), (step - 2, b"\1"), (step - 1, b"\0")
    if end > len(frame) or any(frame[at + place : end : step] != value * count for place, value in places):
        return None
    found = layout.iter_unpack(frame[at:end])
    return ((NONE, index, leader, epoch, ids[of], ids[synced], ()) for index, leader, epoch, of, synced in found), end


def _string(frame: bytes, at: int) -> tuple[str | None, int]:
    length, at = _varint(frame, at)
    if not length:
        return None, at
    end = at + length - 1
    if end > len(frame):
        raise ValueError("a string that ends too early")
    text = frame[at:end].decode()
    if len(text) > _LONGEST_NAME or not text.isprintable():
        raise ValueError(f"a name of more than {_LONGEST_NAME} characters, or with control characters")
    return text, end


def _varint(frame: bytes, at: int) -> tuple[int, int]:
    found = frame[at]
    if found < 0x80:
        return found, at + 1
    found &= 0x7F
    for shift in range(1, _LONGEST_VARINT):
        byte = frame[at + shift]
        found |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return found, at + shift + 1
    raise ValueError("a length of more than five bytes")


def _after_tags(frame: bytes, at: int) -> int:
    """The position after tagged fields, which are skipped (KIP-482)."""
    count, at = _varint(frame, at)
    for _ in range(count):
        _, at = _varint(frame, at)
        size, at = _varint(frame, at)
        at += size
    return at
