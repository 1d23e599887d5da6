"""Errors of the ports, named by what the caller must do next: retry, ask a person, or stop.

Adapters translate their clients' exceptions into these once, at the edge.
"""

from __future__ import annotations


class BellwetherError(Exception):
    """Base of every error that a port raises; never raised itself."""


class Transient(BellwetherError):
    """Nothing is known to be wrong for good: try again at the next turn."""


class Terminal(BellwetherError):
    """A person must act (wrong bootstrap, refused credentials, missing permission); other policies go on."""


class Unauthenticated(Terminal):
    """Who we are cannot be said or is not believed: a Secret, a file, a certificate, a password, a token.

    Somebody renews it in its own time: what was read before is worth reading again.
    """


class Unauthorized(Terminal):
    """Kafka knows who we are and refuses what we ask: an ACL is missing."""


class WrongCluster(Terminal):
    """The connection leads to another Kafka cluster than the one that the undo record belongs to."""


class Fenced(BellwetherError):
    """Another holder has taken over (a higher epoch, a lost Lease): stop at once and change nothing more."""
