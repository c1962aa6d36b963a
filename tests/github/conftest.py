"""A GitHub of our own, for each test that asks it."""

import pytest
from comments import GOOD, Github, packed


@pytest.fixture
def github():
    started = []

    def start(data=None, **changes):
        server = Github(packed(**GOOD | changes) if data is None else data)
        started.append(server)
        return server

    yield start
    for server in started:
        server.server.shutdown()
        server.server.server_close()
