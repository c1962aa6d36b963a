"""A GitHub stand-in for each test."""

import pytest
from comments import GOOD, Github, packed
from gate_reports import all_valid


@pytest.fixture(scope="session", autouse=True)
def _reports_are_valid():
    with all_valid():
        yield


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
