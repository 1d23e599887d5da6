"""Errors of the ports, named by what the caller must do next: retry, ask a person, or stop.

Adapters translate their clients' exceptions into these once, at the edge.
"""

from __future__ import annotations

from bellwether.foreign_text import quoted

MOST_CHARACTERS = 2_000
"""Of a message: three addresses with what each answered."""


class BellwetherError(Exception):
    """Base of every error that a port raises; never raised itself.

    Its message goes to status, logs and terminals, and often repeats what another process said: it is one line of
    bounded length, without control characters.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(quoted(message, MOST_CHARACTERS))


class Transient(BellwetherError):
    """A temporary failure: retry at the next reconcile."""


class NotSent(Transient):
    """The request was surely not sent: it cannot take effect."""


class LeaseUnconfirmed(Transient):
    """Kubernetes did not say who holds the Lease: nothing was sent to Kafka, which is not the reason."""


class RecordUnsaved(Transient):
    """The undo record could not be written, so nothing that it covers was sent."""


class Terminal(BellwetherError):
    """A person must act (wrong bootstrap, refused credentials, missing permission); other policies go on."""


class Unauthenticated(Terminal):
    """Authentication failed: a Secret, file, certificate, password or token is missing, invalid or expired.

    Retry after reading it again: it may be renewed at any time.
    """


class Unauthorized(Terminal):
    """Kafka knows who we are and refuses what we ask: an ACL is missing."""


class WrongCluster(Terminal):
    """The connection leads to another Kafka cluster than the one that the undo record belongs to."""


class Fenced(BellwetherError):
    """Another holder has taken over (a higher epoch, a lost Lease): stop at once and change nothing more."""
