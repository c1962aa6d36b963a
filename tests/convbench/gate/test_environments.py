"""The environment in which a gate measures, and the errors if none can be made. Nothing is built here."""

import json
import subprocess
import sys

import environment_tools
import pytest
from command_line import inside
from gate_projects import FAST, PACKAGE, SLOW, SUITE, Sample

from convbench.asv import project
from convbench.gate import build
from convbench.gate.failures import Usage


def refused(folder, *wanted, **settings):
    """The error of a build of a project with these settings."""
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
        (["nowhere"], {}, "asv knows no environments of nowhere: choose one of virtualenv with --environment"),
        (["conda"], {}, "environments of conda need conda, which is not installed: install it, or --environment virtualenv"),
        ([], {"environment_type": "uv"}, "environments of uv need uv, which is not installed"),
        (["rattler:3.11"], {}, "environments of rattler need the package py-rattler beside asv, which is not installed"),
        ([], {"environment_type": "mamba"}, "asv knows no environments of mamba: choose one of virtualenv with "),
        ([], {"environment_type": "existing"}, "existing environments install nothing, so both sides would be the same"),
        (["existing:same"], {}, "existing environments install nothing"),
        (
            [],
            {"matrix": {"req": {}, "foo": {}}},
            "asv cannot read matrix, include and exclude of the configuration: Unknown keys",
        ),
        ([], {"matrix": {"req": "x"}}, "asv cannot read matrix, include and exclude of the configuration: 'str' object has"),
        ([], {"include": [{"req": {}}]}, "does not specify Python version"),
    ],
    ids=str,
)
def test_where_there_is_none_one_sentence_says_what_to_do(tmp_path, monkeypatch, wanted, settings, said):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert said in refused(tmp_path, *wanted, **settings)


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Functions that install each environment type's tool where asv looks for it."""
    (folder := tmp_path / "tools").mkdir()

    def installed_uv():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "uv"]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("uv cannot be installed from a package index")
        monkeypatch.setenv("PATH", f"{folder}/bin:/usr/bin:/bin")

    def stub_of_conda():
        monkeypatch.setenv("CONDA_EXE", str(environment_tools.conda(folder)))
        monkeypatch.setenv("PATH", "/usr/bin:/bin")

    def stub_of_rattler():
        environment_tools.rattler(folder)
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return {"uv": installed_uv, "conda": stub_of_conda, "rattler": stub_of_rattler}


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["uv", "conda", "rattler"])
def test_with_its_tool_an_environment_is_made_and_measured_in(tmp_path, tools, package_index, kind):
    tools[kind]()
    made = Sample(tmp_path / "project")
    conf = json.loads((made.folder / "asv.conf.json").read_text()) | {"environment_type": kind}
    files = {"asv.conf.json": json.dumps(conf), "benchmarks/b.py": SUITE, "sample/__init__.py": PACKAGE.format(FAST)}
    base = made.commit(files)
    made.commit({"sample/__init__.py": PACKAGE.format(SLOW)})
    done = inside(made.folder, "gate", base, "HEAD", "--json", str(tmp_path / "a.json"), "--budget", "0.3")
    report = json.loads((tmp_path / "a.json").read_text())
    assert [cell["verdict"] for cell in report["cells"]] == ["regressed"], done.stdout + done.stderr
    assert report["environment"].startswith(f"{kind}-py")


@pytest.mark.proof
def test_the_first_of_a_matrix_is_measured_and_the_others_are_named(tmp_path, package_index):
    made = Sample(tmp_path / "project")
    conf = json.loads((made.folder / "asv.conf.json").read_text())
    conf["matrix"]["env_nobuild"] = {"SIZE": ["100", "300"]}
    suite = (
        "import os, time\n\nEND = int(os.environ['SIZE']) / 1e6\n"
        "for name in ('CONF_DIR', 'ENV_NAME', 'PROJECT', 'COMMIT'):\n    os.environ[f'ASV_{name}']\n\n\n"
        "def time_it():\n    end = time.perf_counter() + END\n"
    )
    suite += "    while time.perf_counter() < end:\n        pass\n"
    base = made.commit({"asv.conf.json": json.dumps(conf), "sample/__init__.py": "", "benchmarks/b.py": suite})
    made.commit({"sample/__init__.py": "changed = True"})
    seen = {}
    for arguments in ([], ["--environment", "virtualenv-py3.11-SIZE300"]):
        arguments += ["--json", str(tmp_path / "a.json"), "--all", "--budget", "0.2"]
        done = inside(made.folder, "gate", base, "HEAD", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads((tmp_path / "a.json").read_text())
        seen[report["environment"]] = report["other_environments"], round(report["cells"][0]["before"] * 1e4)
        assert report["environment"].endswith(("SIZE100", "SIZE300"))
    (first, (others, microseconds)), (_, (none, more)) = seen.items()
    assert (first.endswith("SIZE100"), len(others), none) == (True, 1, [])
    assert microseconds < more
