from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bellwether.ports.errors import Terminal
from bellwether.probes.plugins import plugin_discovery

SOUND = """
from bellwether.probes.plugins.plugin_api import Measurement

class Kind:
    type = "{type}"

    def measure(self, broker, addresses, settings, timeout_seconds):
        return Measurement(True, "well", 1.0)

ready = Kind()
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package with one entry point where Python looks, as an installer would."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(package: str, entry: str, source: str, target: str = "Kind") -> None:
        (tmp_path / f"{package}.py").write_text(source)
        folder = tmp_path / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[{plugin_discovery.GROUP}]\n{entry} = {package}:{target}\n")

    return make


@pytest.mark.parametrize("target", ["Kind", "ready"])
def test_a_class_and_an_object_can_both_be_a_kind(install: Install, target: str) -> None:
    name = f"sound_{target.lower()}"
    install(name, "DiskWear", SOUND.format(type="DiskWear"), target)
    kind = plugin_discovery.load("DiskWear")
    assert kind.type == "DiskWear"
    assert kind.measure(1, {}, {}, 1.0).value == 1.0
    (posted,) = (f for f in plugin_discovery.found() if f.type == "DiskWear")
    assert posted == plugin_discovery.Found("DiskWear", f"{name} 1.0", f"{name}:{target}")


def test_a_kind_of_bellwethers_own_cannot_be_replaced(install: Install) -> None:
    install("usurper", "StorageLatency", SOUND.format(type="StorageLatency"))
    with pytest.raises(Terminal, match="a built-in signal type"):
        plugin_discovery.load("StorageLatency")
    assert any("built-in" in f.problem for f in plugin_discovery.found() if f.type == "StorageLatency")


def test_two_packages_with_same_type_are_refused_by_name(install: Install) -> None:
    install("one", "Twice", SOUND.format(type="Twice"))
    install("other", "Twice", SOUND.format(type="Twice"))
    with pytest.raises(Terminal, match=r"several packages .* \(one 1.0, other 1.0\): uninstall all but one"):
        plugin_discovery.load("Twice")


def test_a_missing_kind_is_named_with_the_installed_ones(install: Install) -> None:
    install("there", "Present", SOUND.format(type="Present"))
    with pytest.raises(Terminal, match=r"no installed package provides the signal type Absent .*Present"):
        plugin_discovery.load("Absent")


@pytest.mark.parametrize(
    ("package", "source", "said"),
    [
        ("no_import", "import nothing_of_that_name\n", "ModuleNotFoundError"),
        ("wrong_syntax", "def (\n", "SyntaxError"),
        ("leaves", "raise SystemExit(4)\n", "SystemExit: 4"),
        ("no_kind", "x = 1\n", "AttributeError"),
        ("no_type", "class Kind:\n    def measure(self, a, b, c, d): ...\n", "AttributeError"),
        ("needs_more", "class Kind:\n    type = 'Broken'\n    def __init__(self, x): ...\n", "TypeError"),
        ("no_measure", "class Kind:\n    type = 'Broken'\n", "AttributeError"),
        ("other_name", SOUND.format(type="Other"), "has the type 'Other'"),
        (
            "few_arguments",
            "class Kind:\n    type = 'Broken'\n    def measure(self, broker): ...\n",
            r"measure\(\) must take broker, addresses",
        ),
        ("not_callable", "class Kind:\n    type = 'Broken'\n    measure = 4\n", r"measure\(\) must take"),
    ],
)
def test_package_that_is_not_as_declared_is_refused_by_name(
    install: Install, package: str, source: str, said: str
) -> None:
    install(package, "Broken", source)
    with pytest.raises(Terminal, match=said) as refused:
        plugin_discovery.load("Broken")
    assert f"{package} 1.0" in str(refused.value)
    assert [f.problem for f in plugin_discovery.found() if f.type == "Broken"] == [str(refused.value)]


@pytest.mark.parametrize("name", ["", "lower", "With-Dash", "A" * 64, "A" * 10_000_000, "Ünicode"])
def test_invalid_name_of_type_is_refused_in_few_words(name: str) -> None:
    with pytest.raises(Terminal) as refused:
        plugin_discovery.load(name)
    assert len(str(refused.value)) < 300
