"""Where a node cannot run, the first sentence says why and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from node import machine

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n'
UBUNTU = "ID=ubuntu\nID_LIKE=debian\n"
FEDORA = 'ID=fedora\nID_LIKE=""\n'
HOME = Path("/var/cache/bellwether/node")


@pytest.mark.parametrize("release", [DEBIAN, UBUNTU])
def test_root_on_debian_or_its_kin_will_do(release: str) -> None:
    assert machine.unfit("Linux", 0, release, HOME) == ""


@pytest.mark.parametrize(("system", "release"), [("Linux", FEDORA), ("Linux", ""), ("Darwin", "")])
def test_another_system_is_named(system: str, release: str) -> None:
    said = machine.unfit(system, 0, release, HOME)
    assert "needs Debian" in said
    assert ("fedora" if release else system) in said


def test_who_is_not_root_is_told_how_to_be() -> None:
    assert "sudo -E make cluster" in machine.unfit("Linux", 1000, DEBIAN, HOME)


@pytest.mark.parametrize("hidden", ["/run/cache/node", "/var/lib/jenkins/node", "/var/log/node"])
def test_a_folder_that_the_node_would_hide_from_itself_is_refused(hidden: str) -> None:
    assert "BELLWETHER_CACHE" in machine.unfit("Linux", 0, DEBIAN, Path(hidden))


@pytest.mark.parametrize("route", ["10.0.0.0/8", "10.213.0.0/24", "10.213.255.0/30", "10.213.7.7"])
def test_a_route_of_this_machine_into_the_nodes_network_is_found(route: str) -> None:
    assert machine.overlapping_route([{"dst": "default", "dev": "eth0"}, {"dst": route, "dev": "eth1"}]) == route


@pytest.mark.parametrize("route", ["default", "10.214.0.0/16", "192.0.2.0/24"])
def test_other_routes_do_not_matter(route: str) -> None:
    assert machine.overlapping_route([{"dst": route, "dev": "eth0"}]) == ""


def test_the_route_of_a_node_that_runs_already_is_no_obstacle() -> None:
    assert machine.overlapping_route([{"dst": "10.213.0.0/16", "dev": "bellwether0"}]) == ""


def test_each_package_is_asked_for_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "SYSTEM_PATH", "")
    monkeypatch.setattr(machine, "PLUGINS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.missing_packages() == sorted({*machine.PACKAGES.values(), "containernetworking-plugins"})
