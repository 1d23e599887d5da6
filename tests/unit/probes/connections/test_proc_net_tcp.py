from __future__ import annotations

import ipaddress
import sys

import pytest

from bellwether.probes.connections.sock_diag import number_of
from bellwether.probes.connections.socket_table import LISTEN, entries

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
LITTLE = pytest.mark.skipif(sys.byteorder != "little", reason="the samples come from a little-endian machine")


def line(local: str, remote: str, state: str) -> str:
    return f"   9: {local} {remote} {state} 00000000:00000000 02:00000990 00000000     0        0 104588 2 0000 20 4 31"


def peer(text: str) -> int:
    return number_of(ipaddress.ip_address(text).packed)


@LITTLE
def test_ipv4_ipv6_and_mapped_addresses_are_read() -> None:
    lines = [
        HEAD,
        line("0100007F:2386", "070200C0:C350", "01"),
        line("0000000000000000FFFF00000100007F:2386", "0000000000000000FFFF0000070200C0:C351", "01"),
        line("B80D0120000000000000000001000000:2386", "B80D0120000000000000000007000000:C352", "06"),
    ]
    found = list(entries(lines, 9094))
    assert [(e.peer, e.peer_port) for e in found] == [
        (peer("192.0.2.7"), 50000),
        (peer("192.0.2.7"), 50001),
        (peer("2001:db8::7"), 50002),
    ]
    assert all(e.connected for e in found)


def test_other_ports_and_unfinished_connections_are_skipped() -> None:
    lines = [
        line("0100007F:2387", "0100007F:C350", "01"),
        line("0100007F:2386", "00000000:0000", "0A"),
        line("0100007F:2386", "0100007F:C350", "03"),
    ]
    found = list(entries(lines, 9094))
    assert [(e.state == LISTEN, e.connected) for e in found] == [(True, False), (False, False)]


@pytest.mark.parametrize(
    "broken",
    ["", "   9:", "x y z", line("0100007F:2386", "zz:C350", "01"), line("0:2386", "00:C350", "01"), "\0" * 300],
)
def test_a_broken_line_is_skipped(broken: str) -> None:
    good = line("0100007F:2386", "0100007F:C350", "01")
    assert len(list(entries([broken, good], 9094))) == 1
