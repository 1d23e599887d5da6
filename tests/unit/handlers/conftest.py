from __future__ import annotations

from collections.abc import Iterator

import pytest

from bellwether.core.signals import Reading
from testkit.offices import Office


@pytest.fixture
def office() -> Iterator[Office]:
    """An operator over three well brokers with six partitions."""
    made = Office()
    for broker in made.site.cluster.brokers:
        made.site.signals.say(broker, Reading.PASSING)
    yield made
    made.close()
