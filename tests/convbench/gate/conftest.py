"""One project and one interpreter for all tests of the gate that are not about building."""

import gate_commits
import pytest
from command_line import inside
from gate_projects import Sample
from gate_reports import all_valid


@pytest.fixture(scope="session", autouse=True)
def _reports_are_valid():
    with all_valid():
        yield


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    """The project with its commits by name."""
    return gate_commits.commit_all(Sample(tmp_path_factory.mktemp("gate") / "project"))


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """The interpreter that measures where nothing is built."""
    return gate_commits.interpreter(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="session")
def gate(sample, python):
    """A gate between commits by name, in this process and with real workers: (what it printed, its JSON)."""

    def run(base, head, *arguments):
        with gate_commits.built_by(python):
            return gate_commits.report_of(sample, base, head, inside, *arguments)

    return run
