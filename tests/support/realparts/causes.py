"""Finds the cause of a failed download or build in the output of the tool, as one sentence with its remedy.

In: what pip, Go, a compiler or the system printed. Out: the sentence, or nothing where the cause is not known. The
standard library alone: ``environment`` runs before anything is installed.
"""

from __future__ import annotations

import re

NO_NETWORK = (
    "the package registry cannot be reached: check the network, and the settings of proxy and mirror,"
    " then run the same command again (what is complete is kept)"
)
DISK_FULL = "the disk is full: free some space, then run the same command again (what is complete is kept)"
NO_COMPILER = "there is no C compiler: install one, so that cc, gcc or clang is on PATH (on Debian: apt install gcc)"

_CAUSES = (
    (re.compile(r"no space left on device|errno 28|disk quota exceeded|enospc", re.IGNORECASE), DISK_FULL),
    (
        re.compile(r"do not match the hashes|checksum mismatch|sha256 .* is pinned", re.IGNORECASE),
        "what the registry serves is not what is pinned: check the mirror that it comes from",
    ),
    (
        re.compile(r"certificate verify failed|x509: certificate", re.IGNORECASE),
        "the registry's certificate is not trusted: name your authority's file"
        " in PIP_CERT, SSL_CERT_FILE and REQUESTS_CA_BUNDLE",
    ),
    (
        re.compile(
            r"temporary failure in name resolution|name or service not known|no such host|connection refused"
            r"|connection reset|network is unreachable|no route to host|i/o timeout|timed? ?out|max retries exceeded"
            r"|module lookup disabled|disabled by -mod|failed to establish a new connection|no matching distribution"
            r"|tls handshake timeout|proxyerror|unexpected eof|bad gateway|service unavailable|incompleteread",
            re.IGNORECASE,
        ),
        NO_NETWORK,
    ),
    (re.compile(r'"(?:gcc|cc|clang)": executable file not found|c compiler .* not found', re.IGNORECASE), NO_COMPILER),
    (
        re.compile(r"signal: killed|cannot allocate memory|out of memory", re.IGNORECASE),
        "the memory did not suffice (about 3 GB are needed): end other programs, then run the same command again",
    ),
)


def cause(output: str) -> str | None:
    """The first known cause in the output, or None."""
    return next((sentence for pattern, sentence in _CAUSES if pattern.search(output)), None)
