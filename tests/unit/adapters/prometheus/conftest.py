from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.processes.http_replies import ReplyServer


@pytest.fixture
def server() -> Iterator[ReplyServer]:
    noted = ReplyServer()
    yield noted
    noted.close()
