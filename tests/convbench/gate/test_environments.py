"""In which environment a gate measures, and what it says where none can be made. Nothing is built here."""

import json

import pytest
from command_line import inside
from gate_projects import Sample

from convbench.asv import project
from convbench.gate import build
from convbench.gate.failures import Usage


def refused(folder, *wanted, **settings):
    """What a build of a project with these settings is refused with."""
    made = Sample(folder / "project")
    conf = json.loads((made.folder / "asv.conf.json").read_text())
    made.commit({"asv.conf.json": json.dumps(conf | settings), "sample/__init__.py": ""})
    (work := made.folder / ".convbench").mkdir()
    found = project.load(made.folder / "asv.conf.json")
    commit = found.commit()
    with pytest.raises(Usage) as error:
        build.build(found, {"base": commit, "head": commit}, work, build.Wanted(wanted))
    assert not (made.folder / ".asv").exists()
    return error.value.message


@pytest.mark.parametrize(
    ("wanted", "settings", "said"),
    [
        ([], {"pythons": ["3.99"]}, "asv found no Python 3.99 for environments of virtualenv: install it, or choose another"),
        ([":3.98"], {}, "asv found no Python 3.98 for environments of virtualenv"),
        (
            [],
            {"environment_type": None, "pythons": ["3.11"]},
            "asv finds no environment (Environment type must be specified): choose",
        ),
        (["nowhere"], {}, "asv knows no environments of nowhere: choose one of conda, "),
        (["conda"], {}, "environments of conda need conda, which is not installed: install it, or --environment virtualenv"),
        ([], {"environment_type": "mamba"}, "environments of mamba need mamba, which is not installed"),
        ([], {"environment_type": "rattler"}, "environments of rattler need "),
        ([], {"environment_type": "existing"}, "existing environments install nothing, so that both sides would be the same"),
        (["existing:same"], {}, "existing environments install nothing"),
    ],
    ids=str,
)
def test_where_there_is_none_one_sentence_says_what_to_do(tmp_path, monkeypatch, wanted, settings, said):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert said in refused(tmp_path, *wanted, **settings)


@pytest.mark.slow
def test_the_first_of_a_matrix_is_measured_and_the_others_are_named(tmp_path, package_index):
    made = Sample(tmp_path / "project")
    conf = json.loads((made.folder / "asv.conf.json").read_text())
    conf["matrix"]["env_nobuild"] = {"SIZE": ["100", "300"]}
    suite = (
        "import os, time\n\nEND = int(os.environ['SIZE']) / 1e6\n\n\ndef time_it():\n    end = time.perf_counter() + END\n"
    )
    suite += "    while time.perf_counter() < end:\n        pass\n"
    base = made.commit({"asv.conf.json": json.dumps(conf), "sample/__init__.py": "", "benchmarks/b.py": suite})
    made.commit({"sample/__init__.py": "changed = True"})
    seen = {}
    for arguments in ([], ["--environment", "virtualenv-py3.11-SIZE300"]):
        done = inside(made.folder, "gate", base, "HEAD", "--json", str(tmp_path / "a.json"), "--budget", "0.2", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads((tmp_path / "a.json").read_text())
        seen[report["environment"]] = report["other_environments"], round(report["cells"][0]["before"] * 1e4)
        assert report["environment"].endswith(("SIZE100", "SIZE300"))
    (first, (others, microseconds)), (_, (none, more)) = seen.items()
    assert (first.endswith("SIZE100"), len(others), none) == (True, 1, [])
    assert microseconds < more
