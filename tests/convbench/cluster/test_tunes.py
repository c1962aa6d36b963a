"""`convbench tune --cluster`: each machine builds HEAD, is tuned with that build, and remembers it in its own cache."""

import gzip
import json

import pytest
from clusters import client, cluster
from command_line import inside, sentence
from gate_projects import Sample
from runs import use_preinstalled

pytestmark = [pytest.mark.first, pytest.mark.timeout(600)]

# A suite whose answers are made up; the package that it imports is only where HEAD was built.
SUITE = """
import json, os, pathlib, sys

import sample

VERB, *REQUEST = sys.argv[1:]
if VERB == "problems":
    print(json.dumps({"problem": "small"}))
elif VERB == "remember":
    request = json.loads(REQUEST[0])
    known = json.loads(pathlib.Path(request["times"]).read_text())
    pathlib.Path(os.environ["XDG_CACHE_HOME"], "wisdom.json").write_text(json.dumps([known, sample.__file__]))
    print(json.dumps({"problems": len(known), "processor": sample.NAME, "instruction_set": "none"}))
else:
    for line in sys.stdin:
        for name in json.loads(line)["names"]:
            print(json.dumps({"cell": {"name": name, "status": "ok", "samples": [2.0 if name == "a" else 1.0]}}))
        print(json.dumps({"facts": {"versions": {}}}))
        print(json.dumps({"ended": 0}), flush=True)
"""
SETTINGS = """
sets = []
random = 1
seed = 1
seconds = 0.001
within = 3.0
threads = [1]
candidates = ["a", "b"]
"""


@pytest.mark.slow
def test_each_machine_is_tuned_with_its_own_build_and_remembers(tmp_path):
    made = Sample(tmp_path / "project")
    made.write({"benchmarks/__main__.py": SUITE, "benchmarks/commands/tune.toml": SETTINGS})
    made.write({"asv.conf.json": use_preinstalled(made)})
    commit = made.commit({"sample/__init__.py": 'NAME = "the build"\n'}, "first")[:8]
    with cluster(tmp_path / "cluster", "box-a", "box-b") as machines:
        done = inside(made.folder, "tune", "--cluster", machines.address)
        assert (done.returncode, done.stderr) == (0, ""), machines.logs()
    for machine in ("box-a", "box-b"):
        assert f"{machine}: impls.conv2d now knows 1 problems on 1 thread of the build, none\n" in done.stdout
        times = made.folder / "results" / machine / "tune" / f"{commit}.jsonl.gz"
        assert json.loads(gzip.decompress(times.read_bytes()))["problem"] == "small"
        home = tmp_path / "cluster" / "homes" / machine
        known, package = json.loads((home / "wisdom.json").read_text())
        assert known == {"small": {"a": 2.0, "b": 1.0}}
        assert package.endswith("/site-packages/sample/__init__.py")  # not the clone's


def test_wrong_calls(tmp_path, monkeypatch):
    from convbench.common import extras

    made = Sample(tmp_path / "project")
    with client():
        done = inside(made.folder, "tune", "--dirty", "--cluster", "tls://127.0.0.1:1")
        assert done.returncode == 2
        assert "--cluster cannot be combined with --dirty" in done.stderr
        monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
        done = inside(made.folder, "tune", "--cluster", "tls://127.0.0.1:1")
    assert sentence(done) == "Error: --cluster needs distributed: pip install 'convbench[cluster]'"
