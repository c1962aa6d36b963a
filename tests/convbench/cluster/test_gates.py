"""Gates and bisections on a cluster: each cell's two sides on one machine, and the verdicts of one gate."""

import json
import re

import pytest
from clusters import client, cluster
from command_line import inside, sentence
from gate_projects import FAST, PACKAGE, SLOW, Sample
from runs import use_preinstalled

from convbench.bisect.halving import Halving

pytestmark = [pytest.mark.first, pytest.mark.timeout(900)]

SUITE = """
import sample


class Work:
    params = [1, 2, 3]
    param_names = ["n"]
    sample_time = 0.002

    def time_work(self, n):
        sample.work()
"""
CELL = "speed.Work.time_work(1)"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Commits of a package that the fifth makes three times as slow; the third does not build."""
    made = Sample(tmp_path_factory.mktemp("gate") / "project")
    made.write({"benchmarks/speed.py": SUITE, "asv.conf.json": use_preinstalled(made)})
    fast, slow = PACKAGE.format(FAST), PACKAGE.format(SLOW)
    codes = [fast, fast + "\n", "# does not build", fast + "\n\n", slow, slow + "\n", slow + "\n\n", slow + "\n\n\n"]
    made.hashes = [made.commit({"sample/__init__.py": code}, f"commit {i}") for i, code in enumerate(codes)]
    return made


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("machines"), "box-a", "box-b") as made:
        yield made


@pytest.mark.proof
def test_cells_are_spread_and_judged_together(project, machines, tmp_path):
    file = tmp_path / "report.json"
    sides = project.hashes[3], project.hashes[4]
    arguments = ("--cluster", machines.address, "--json", str(file), "--markdown", str(tmp_path / "report.md"))
    done = inside(project.folder, "gate", *sides, *arguments)
    assert done.returncode == 1, done.stdout + done.stderr + machines.logs()
    content = json.loads(file.read_text())
    assert (content["base"], content["head"], content["shard"], content["error"]) == (*sides, None, None)
    assert {cell["verdict"] for cell in content["cells"]} == {"regressed"}
    assert sorted(content["machine"]["machine"].split(", ")) == ["box-a", "box-b"]
    places = [cell["measured_on"] for cell in content["cells"]]
    assert sorted(map(places.count, ("box-a", "box-b"))) == [1, 2]
    assert "measured on box-a" in done.stdout
    assert "measured on box-b" in (tmp_path / "report.md").read_text()


@pytest.mark.proof
def test_more_machines_than_cells_and_an_accepted_one(project, machines, tmp_path):
    accepted = tmp_path / "accepted.toml"
    accepted.write_text(f'[[accept]]\ncell = "{CELL}"\nreason = "it is right"\n')
    sides = project.hashes[3], project.hashes[4]
    done = inside(
        project.folder,
        "gate",
        *sides,
        "--bench",
        re.escape(CELL),
        "--accept-file",
        str(accepted),
        "--cluster",
        machines.address,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 accepted" in done.stdout


@pytest.mark.proof
def test_a_head_that_does_not_build_fails_the_gate_as_on_one_machine(project, machines):
    done = inside(project.folder, "gate", project.hashes[1], project.hashes[2], "--cluster", machines.address)
    assert done.returncode == 3
    assert "the head does not build: sample does not build: the compiler says no (full log: " in done.stdout


@pytest.mark.proof
def test_wrong_calls_and_a_cluster_that_is_not_there(project, machines):
    done = inside(project.folder, "gate", "--cluster", machines.address, "--shard", "1/2")
    assert done.returncode == 2
    assert "--cluster cannot be combined with" in sentence(done)
    done = inside(project.folder, "gate", *project.hashes[3:5], "--bench", "nothing", "--cluster", machines.address)
    assert done.returncode == 4
    assert "no benchmark of that name can be timed" in done.stdout
    done = inside(project.folder, "gate", *project.hashes[3:5], "--cluster", machines.address, "--machines", "den-*")
    assert done.returncode == 4
    assert "no machine measures: it is called box-" in done.stdout


@pytest.mark.proof
def test_a_bisection_measures_several_commits_at_a_time(project, machines):
    done = inside(project.folder, "bisect", CELL, project.hashes[0], "--cluster", machines.address)
    assert done.returncode == 0, done.stdout + done.stderr + machines.logs()
    slow = project.hashes[4]
    assert re.search(rf"^{slow[:10]} commit 4 made {re.escape(CELL)} slower: ", done.stdout, re.MULTILINE)
    measured = set(re.findall(r"gate of (\w+)", machines.logs()))
    assert measured <= {commit[:8] for commit in project.hashes}


def test_places_ahead_are_those_that_any_answer_leads_to():
    halving = Halving(0, 8)
    assert halving.ahead(1) == [4]
    assert halving.ahead(3) == [4, 2, 6]
    assert sorted(halving.ahead(20)) == list(range(1, 8))
    halving.tell(4, True)
    assert set(halving.ahead(3)) == {1, 2, 3}
    assert Halving(0, 1).ahead(3) == []


def test_without_a_cluster_nothing_else_needs_dask(project, monkeypatch):
    from convbench.common import extras

    with client():
        monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
        for command in (("gate", *project.hashes[3:5]), ("bisect", CELL, project.hashes[0])):
            done = inside(project.folder, *command, "--cluster", "tls://127.0.0.1:1")
            assert done.returncode == 2
            assert sentence(done) == "Error: --cluster needs distributed: pip install 'convbench[cluster]'"
