from __future__ import annotations

import contextlib
import errno
import ipaddress
import random
import struct

import pytest

from bellwether.probes.connections.sock_diag import AF_INET, AF_INET6, LISTEN, Ignored, decode, dump_request, number_of


def message(kind: int, body: bytes, sequence: int = 1) -> bytes:
    whole = struct.pack("=IHHII", 16 + len(body), kind, 2, sequence, 0) + body
    return whole + bytes(-len(whole) % 4)


def socket(family: int, peer: str, port: int = 9094, state: int = 1, info: bytes | None = None) -> bytes:
    address = ipaddress.ip_address(peer).packed.ljust(16, b"\0")
    body = struct.pack("=BBBB", family, state, 0, 0) + struct.pack("!HH", port, 50000) + bytes(16) + address
    body += bytes(4 + 8 + 20)
    if info is not None:
        body += struct.pack("=HH", 4 + len(info), 2) + info
    return message(20, body)


def tcp_info(last_data_received: int, received: int, length: int = 280) -> bytes:
    info = bytearray(280)
    struct.pack_into("=I", info, 52, last_data_received)
    struct.pack_into("=Q", info, 128, received)
    return bytes(info[:length])


END = message(3, struct.pack("=i", 0))


def test_a_peer_has_the_time_of_its_last_data() -> None:
    found = decode(socket(AF_INET, "192.0.2.7", info=tcp_info(1500, 42)) + END)
    assert found.ended
    (one,) = found.sockets
    assert (one.port, one.state, one.last_received_seconds) == (9094, 1, 1.5)
    assert one.peer == number_of(ipaddress.ip_address("::ffff:192.0.2.7").packed)


@pytest.mark.parametrize("received", [0, 1])
def test_a_peer_that_sent_only_its_close_has_no_time(received: int) -> None:
    assert decode(socket(AF_INET6, "2001:db8::7", info=tcp_info(5, received))).sockets[0].last_received_seconds is None


def test_listening_and_time_wait_sockets_have_no_visitor() -> None:
    listening = socket(AF_INET6, "::", state=LISTEN, info=tcp_info(0, 0))
    waiting = socket(AF_INET, "192.0.2.7", state=6)
    assert [s.last_received_seconds for s in decode(listening + waiting).sockets] == [None, None]


def test_a_kernel_without_byte_counts_gives_no_time() -> None:
    assert (
        decode(socket(AF_INET, "192.0.2.7", info=tcp_info(5, 9, length=104))).sockets[0].last_received_seconds is None
    )


def test_refusal_is_error_and_family_that_kernel_lacks_is_empty() -> None:
    with pytest.raises(PermissionError):
        decode(message(2, struct.pack("=i", -errno.EPERM)))
    assert decode(message(2, struct.pack("=i", -errno.EAFNOSUPPORT))).ended


def test_answers_to_an_abandoned_request_are_skipped() -> None:
    late = socket(AF_INET, "192.0.2.7", info=tcp_info(5, 9)) + END
    assert decode(late, sequence=2) == decode(b"")


def test_a_request_names_family_port_and_all_states() -> None:
    request = dump_request(AF_INET6, 9094, 7)
    assert struct.unpack_from("=IHHII", request) == (72, 20, 0x301, 7, 0)
    assert struct.unpack_from("=BBBxI", request, 16) == (AF_INET6, 6, 2, 0xFFF)
    assert struct.unpack_from("!HH", request, 24) == (9094, 0)


def test_garbage_is_skipped_in_bounded_time() -> None:
    random.seed(1)
    whole = socket(AF_INET, "192.0.2.7", info=tcp_info(5, 9)) * 3 + END
    for _ in range(2000):
        broken = bytearray(whole[: random.randint(0, len(whole))])
        for _ in range(3):
            if broken:
                broken[random.randrange(len(broken))] = random.randrange(256)
        with contextlib.suppress(OSError):  # a refusal with a made-up number
            assert len(decode(bytes(broken)).sockets) <= 3


@pytest.mark.parametrize(
    ("network", "inside", "outside"),
    [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
        ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
        ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
        ("10.1.2.3/8", "10.9.9.9", "9.9.9.9"),
        ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
    ],
)
def test_what_comes_from_an_ignored_network_does_not_count(network: str, inside: str, outside: str) -> None:
    ignored = Ignored([network])
    assert number_of(ipaddress.ip_address(inside).packed) in ignored
    assert number_of(ipaddress.ip_address(outside).packed) not in ignored


def test_a_mapped_address_is_ignored_with_its_ipv4_network() -> None:
    assert number_of(ipaddress.ip_address("::ffff:10.1.1.1").packed) in Ignored(["10.0.0.0/8"])
    assert number_of(ipaddress.ip_address("::ffff:10.1.1.1").packed) in Ignored(["::ffff:0:0/96"])


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        Ignored(["nonsense"])
