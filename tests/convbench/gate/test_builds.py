"""Gates that build both sides by the project's own commands, from the build to the report."""

import json
import os
import re
import resource
import subprocess
import sys
import zipfile

import pytest
from command_line import inside, settings
from gate_commits import left_behind, report_of
from gate_projects import BACKEND, PYPROJECT, Sample

from convbench.asv import project
from convbench.asv.install_commits import _requirements
from convbench.gate import build, discover

pytestmark = pytest.mark.first

CODE = """
import time


def spin():
    end = time.perf_counter() + 200e-6
    while time.perf_counter() < end:
        pass
"""
SUITE = """
import sample


class Spin:
    params = ([20], ["a"])
    sample_time = 0.002

    def time_spin(self, n, kind):
        sample.spin()
"""


@pytest.fixture(scope="module")
def sample(tmp_path_factory, package_index):
    """Commits of a package that needs nothing but Python, by name."""
    made = Sample(tmp_path_factory.mktemp("builds") / "project")
    kinds = {"base": CODE, "slower": CODE.replace("200e-6", "320e-6"), "nothing": CODE, "no build": "# does not build\n"}
    backends = {"nothing": BACKEND.replace('if f.endswith(".py")', "if False").replace('files["sample/__init__.py"]', 'b""')}
    made.commits = {}
    for name, code in kinds.items():
        files = {"benchmarks/b.py": SUITE, "sample/__init__.py": code, "backend.py": backends.get(name, BACKEND)}
        made.commits[name] = made.commit(files, name)
    return made


@pytest.fixture(scope="module")
def gate(sample):
    """A gate between commits by name, in this process: (what it printed, its JSON)."""
    return lambda base, head, *arguments: report_of(sample, base, head, inside, *arguments)


@pytest.fixture(scope="module")
def unbuilt(gate):
    """A gate for each side in which that side does not build, although the environment exists."""
    return {"base": gate("no build", "base"), "head": gate("base", "no build")}


@pytest.mark.slow
@pytest.mark.parametrize(("side", "status"), [("head", 3), ("base", 4)])
def test_a_side_that_does_not_build(unbuilt, side, status):
    done, report = unbuilt[side]
    assert done.returncode == status
    assert report["error"].startswith(f"the {side} does not build: ")
    assert "the compiler says no" in report["error"]
    assert done.stdout.count(f"the {side} does not build: ") == 1
    assert done.stdout.endswith(f"the {side} does not build.\n")


@pytest.mark.slow
@pytest.mark.parametrize("sides", [pytest.param(("nothing", "base"), marks=pytest.mark.proof), ("base", "nothing")])
def test_a_side_that_installs_nothing(gate, unbuilt, sides):
    """asv's environment contains the other side's files, which both would load."""
    done, report = gate(*sides)
    assert done.returncode == 4
    side = ("base", "head")[sides.index("nothing")]
    assert report["error"] == f"the {side} installs nothing: its installation contains no file of a package"


@pytest.fixture(scope="module")
def full_disk(sample, unbuilt):
    """The output of a gate whose disk fills while it builds; a limit on file sizes stands for the disk."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    return subprocess.run(
        [sys.executable, "-m", "convbench", "gate", sample.commits["base"], sample.commits["slower"]],
        cwd=sample.folder,
        env=os.environ | settings(sample.folder),
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_the_disk_fills_while_it_builds(sample, full_disk):
    said = full_disk.stdout + full_disk.stderr
    assert full_disk.returncode == 4, said
    assert "Traceback" not in said
    assert len(re.findall("the environment does not build: |the base does not build: ", full_disk.stdout)) == 1, said
    assert left_behind(sample.folder) == []


@pytest.mark.proof
def test_a_slower_function_where_a_build_was_left_half(sample, gate, full_disk):
    markdown = sample.folder.parent / "report.md"
    done, report = gate("base", "slower", "--budget", "2", "--markdown", markdown)
    assert done.returncode == 1
    (cell,) = report["cells"]
    assert (cell["benchmark"], cell["params"], cell["verdict"]) == ("b.Spin.time_spin", ["20", "'a'"], "regressed")
    assert 1.3 < cell["interval"][0] < cell["ratio"] < cell["interval"][1] < 2
    assert cell["again"] in done.stdout
    assert cell["again"] in markdown.read_text()
    assert "regressed" in markdown.read_text()
    assert report["environment"].startswith("virtualenv-py")


@pytest.mark.slow
def test_a_self_test_that_cannot_build(sample):
    """HEAD is the commit that does not build."""
    done = inside(sample.folder, "gate", "--self-test")
    assert done.returncode == 4
    assert "Error: the base does not build: " in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


COPY = "import shutil, sysconfig; shutil.copytree('sample', sysconfig.get_path('purelib') + '/sample', dirs_exist_ok=True)"


@pytest.mark.proof
def test_a_project_that_makes_no_wheel_is_installed_by_its_own_commands(tmp_path, package_index):
    """Each side has an environment of its own, at paths of one length."""
    made = Sample(tmp_path / "project")
    conf = json.loads((made.folder / "asv.conf.json").read_text())
    conf |= {"build_command": [], "install_command": [f'python -c "{COPY}"'], "uninstall_command": []}
    suite = SUITE + "\n    def time_path(self, n, kind):\n        assert len(sample.__file__) == {}\n        sample.spin()\n"
    length = len(
        str(made.folder / ".convbench" / "gate" / "environments" / "base" / ("0" * 32) / "lib/python3.11/site-packages")
    )
    length += len("/sample/__init__.py")
    files = {"asv.conf.json": json.dumps(conf), "benchmarks/b.py": suite.format(length)}
    base = made.commit({**files, "sample/__init__.py": CODE})
    head = made.commit({"sample/__init__.py": CODE.replace("200e-6", "320e-6")})
    for _ in range(2):  # the second gate has the environments
        done = inside(made.folder, "gate", base, head, "--budget", "0.3", "--json", str(tmp_path / "a.json"))
        report = json.loads((tmp_path / "a.json").read_text())
        assert [cell["verdict"] for cell in report["cells"]] == ["regressed"] * 2, done.stdout + done.stderr


def wheel(folder, name, version, code, more=""):
    """Write a wheel of one module; its path."""
    path, record = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", code)
        archive.writestr(
            f"{record}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}\nRequires-Dist: no\n"
        )
        archive.writestr(f"{record}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{record}/RECORD", "")
    return str(path)


def test_what_a_wheel_requires_is_read(tmp_path):
    one = wheel(tmp_path / "one", "sample", "1", "", "Requires-Python: >=3.9\nRequires-Dist: dep==1\nRequires-Dist: other\n")
    two = wheel(tmp_path / "two", "sample", "2", "", "Requires-Dist: other\nRequires-Dist: dep==1\nRequires-Python: >=3.9\n")
    assert _requirements([one]) == _requirements([two]) != frozenset()
    assert _requirements([wheel(tmp_path, "sample", "1", "", "Requires-Dist: dep==2\n")]) != _requirements([one])


@pytest.mark.proof
def test_each_side_has_its_own_dependencies(tmp_path, package_index):
    """The head changes nothing but the version that it requires."""
    made = Sample(tmp_path / "project")
    conf = json.loads((made.folder / "asv.conf.json").read_text())
    packages = tmp_path / "packages"
    conf["install_command"] = [f"in-dir={{env_dir}} python -m pip install --no-index --find-links {packages} {{wheel_file}}"]
    for version in "12":
        wheel(packages, "dependency", version, f"VERSION = {version}\n")
    backends = [BACKEND.replace('1.0\\n"\n    tags', f'1.0\\nRequires-Dist: dependency=={one}\\n"\n    tags') for one in "12"]
    files = {"asv.conf.json": json.dumps(conf), "benchmarks/b.py": SUITE, "sample/__init__.py": "from dependency import *"}
    commits = {"base": made.commit({**files, "backend.py": backends[0]}), "head": made.commit({"backend.py": backends[1]})}
    (work := made.folder / ".convbench").mkdir()
    built = build.build(project.load(made.folder / "asv.conf.json"), commits, work)
    asked = "import sample; print(sample.VERSION)"
    said = [subprocess.run([one.python, "-c", asked], capture_output=True, text=True, check=True) for one in built.values()]
    assert [one.stdout for one in said] == ["1\n", "2\n"]
    assert "dependency.py" in [change.name for change in discover.differences(built, commits).changes]


SDIST = """

def build_sdist(sdist_directory, config_settings=None):
    import tarfile

    with tarfile.open(os.path.join(sdist_directory, "sample-1.0.tar.gz"), "w:gz") as archive:
        for name in ("backend.py", "pyproject.toml", "sample"):
            archive.add(name, f"sample-1.0/{name}")
        archive.add("pyproject.toml", "sample-1.0/PKG-INFO")  # one has to be there
    return "sample-1.0.tar.gz"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "left_out", "folder"),
    [pytest.param(0, ("build_command", "install_command"), ".", marks=pytest.mark.proof), (1, (), "python")],
)
def test_both_wheels_are_kept_however_few_the_configuration_allows(tmp_path, package_index, size, left_out, folder):
    made = Sample(tmp_path / "project")
    conf = json.loads((made.folder / "asv.conf.json").read_text()) | {"build_cache_size": size, "repo_subdir": folder}
    conf = {key: value for key, value in conf.items() if key not in left_out}
    files = {"backend.py": BACKEND + SDIST, "pyproject.toml": PYPROJECT, "sample/__init__.py": "a = 1"}
    files = {f"{folder}/{name}": text for name, text in files.items()}
    base = made.commit({"asv.conf.json": json.dumps(conf), "benchmarks/b.py": SUITE, **files})
    commits = {"base": base, "head": made.commit({f"{folder}/sample/__init__.py": "a = 2"})}
    (work := made.folder / ".convbench").mkdir()
    built = build.build(project.load(made.folder / "asv.conf.json"), commits, work)
    assert [(one.code / "sample" / "__init__.py").read_text() for one in built.values()] == ["a = 1", "a = 2"]
    for side, one in built.items():
        assert one.variables["ASV_BUILD_CACHE_DIR"].endswith(commits[side])
        assert one.variables["ASV_BUILD_DIR"] == str(work / side / "checkout" / folder)
