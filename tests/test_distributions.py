"""Both distributions as a release builds them: their content, their dependencies, and that each works alone."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from gate_projects import Sample
from repositories import commit, git

ROOT = Path(__file__).parents[1]
VERSION = (ROOT / "convbench" / "VERSION").read_text(encoding="utf-8").strip()
pytestmark = [pytest.mark.slow, pytest.mark.first, pytest.mark.timeout(900)]
# By a compiler that always fails, nothing here is compiled.
VARIABLES = {**{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}, "CC": "/bin/false"}
HEAVY = {"torch", "numba", "plotly", "pyarrow", "matplotlib"}
BEFORE_BOTH = "5828739"  # the last commit at which one distribution called convbench held everything
FAST, SLOW = "return sum(range(20000))", "return sum(range(60000))"


def copy_tree(folder):
    """The working tree's tracked files, as one commit of a new repository."""
    for path in git(ROOT, "ls-files").splitlines():
        if (ROOT / path).is_file():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, folder / path)
    git(folder, "init", "--quiet")
    commit(folder, "the working tree")
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory, package_index):
    """The folder that `make distributions` fills."""
    tree = copy_tree(tmp_path_factory.mktemp("tree"))
    command = ["make", "--directory", tree, "distributions", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("PASSED") == 3
    return tree / "dist"


class Environment:
    """An empty virtual environment in which things are installed."""

    def __init__(self, folder):
        venv.create(folder, with_pip=True)
        self.bin = folder / "bin"

    def run(self, program, *arguments, **options):
        command = [self.bin / program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=VARIABLES, **options)

    def install(self, *arguments):
        done = self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments)
        assert done.returncode == 0, done.stderr[-3000:]

    def installed(self):
        listed = self.run("python", "-m", "pip", "list", "--format", "json", "--disable-pip-version-check").stdout
        return {one["name"].lower().replace("_", "-") for one in json.loads(listed)} - {"pip", "setuptools"}


@pytest.fixture(scope="module")
def tool(built, tmp_path_factory):
    """An environment with the tool's wheel alone, and the seconds of processors that installing took."""
    (wheel,) = (built / "convbench").glob("*.whl")
    made = Environment(tmp_path_factory.mktemp("tool"))
    before = os.times()
    made.install(wheel)
    after = os.times()
    made.seconds = sum(after[2:4]) - sum(before[2:4])
    return made


def test_the_wheel_is_pure_and_complete(built):
    (wheel,) = (built / "convbench").glob("*.whl")
    assert wheel.name == f"convbench-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (about,) = (archive.read(name).decode() for name in names if name.endswith("/METADATA"))
    files = {f"convbench/{path}" for path in git(ROOT / "convbench", "ls-files").splitlines()}
    beside = {f"convbench/{name}" for name in ("pyproject.toml", "README.md", "LICENSE", "VERSION")}
    assert {name for name in names if ".dist-info/" not in name} == {f for f in files - beside if (ROOT / f).is_file()}
    required = [one for one in Parser().parsestr(about).get_all("Requires-Dist") if "extra ==" not in one]
    assert len(required) < 10


def test_the_sdists_leave_results_out(built):
    for archive, mib in (
        *((path, 1) for path in (built / "convbench").glob("*.gz")),
        *((path, 3) for path in (built / "convbench-impls").iterdir()),
    ):
        assert archive.name.endswith(f"-{VERSION}.tar.gz")
        assert archive.stat().st_size < mib << 20
        with tarfile.open(archive) as content:
            assert not any("/results/" in name for name in content.getnames())


@pytest.mark.proof
def test_the_tool_brings_little(tool):
    assert tool.seconds < 60
    assert len(tool.installed() - {"convbench"}) < 30
    assert tool.installed().isdisjoint({*HEAVY, "impls", "convbench-impls"})


@pytest.mark.proof
def test_the_help_is_there_at_once(tool):
    def seconds():
        before = os.times()
        done = tool.run("convbench", "--help")
        assert (done.returncode, done.stderr) == (0, "")
        return sum(os.times()[2:4]) - sum(before[2:4])

    assert min(seconds() for _ in range(5)) < 0.4
    assert tool.run("convbench", "--version").stdout.strip().endswith(VERSION)


def project(folder, runner):
    """A project that is not ours, its second commit slower: its path and the two commits."""
    made = Sample(folder, {"pip+asv_runner": runner})
    suite = "import sample\n\n\nclass Sums:\n    def time_sum(self):\n        sample.total()\n"
    base = made.commit({"sample/__init__.py": f"def total():\n    {FAST}\n", "benchmarks/sums.py": suite})
    return made.folder, base, made.commit({"sample/__init__.py": f"def total():\n    {SLOW}\n"})


def judge(environment, folder, base, head):
    done = environment.run("convbench", "gate", base, head, "--json", folder / ".convbench.json", cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    (cell,) = json.loads((folder / ".convbench.json").read_text(encoding="utf-8"))["cells"]
    assert (cell["verdict"], cell["benchmark"]) == ("regressed", "sums.Sums.time_sum")
    assert 2 < cell["ratio"] < 4


@pytest.mark.proof
def test_the_tool_judges_a_project_that_is_not_ours(tool, tmp_path):
    judge(tool, *project(tmp_path / "project", "0.3.2"))


@pytest.mark.proof
def test_the_tool_reads_our_results(tool, tmp_path):
    for command, shown in (("table", "conv2d.ImageSize"), ("history", "commits with results")):
        done = tool.run("convbench", command, "--machine", "amd-epyc-2cores", cwd=ROOT)
        assert (done.returncode, done.stderr) == (0, "")
        assert shown in done.stdout
    done = tool.run("convbench", "export", tmp_path / "all.csv", cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "all.csv").stat().st_size > 1 << 20


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["run", "--cluster", "tls://x:1"], "--cluster needs distributed: pip install 'convbench[cluster]'"),
        (["export", "all.parquet"], "Parquet needs pyarrow: pip install 'convbench[export]'"),
        (
            ["profile", "a", "b", "--native", "a.svg"],
            "--native needs py-spy, which is not installed: pip install 'convbench[profile]'",
        ),
    ],
)
@pytest.mark.proof
def test_what_an_extra_brings_is_named(tool, command, said, tmp_path):
    done = tool.run("convbench", *command, cwd=ROOT)
    assert (done.returncode, done.stderr) == (1, f"Error: {said}\n")


@pytest.mark.proof
def test_the_oldest_asv_and_asv_runner(built, tmp_path):
    """From the gate to the page, with the oldest of both that can be had."""
    if sys.version_info[:2] != (3, 11):
        pytest.skip("asv 0.6.1 has a wheel for Python 3.11 and older")
    (wheel,) = (built / "convbench").glob("*.whl")
    old = Environment(tmp_path / "old")
    old.install(f"{wheel}[page]", "asv==0.6.1", "asv_runner==0.2.1", "virtualenv", "importlib_metadata")
    folder, base, head = project(tmp_path / "project", "0.2.1")
    judge(old, folder, base, head)
    for command, status, shown in (
        (["run", f"{base}^!", "--busy"], 0, "1 "),
        (["run", f"{head}^!", "--busy"], 0, "1 "),
        (["table"], 0, "sums.Sums"),
        (["compare", base, head], 1, "1 slower"),
        (["history"], 0, "2 commits"),
    ):
        done = old.run("convbench", *command, cwd=folder)
        assert done.returncode == status, (command, done.stdout, done.stderr)
        assert shown in done.stdout + done.stderr, (command, done.stdout, done.stderr)
    settings = json.loads((folder / "asv.conf.json").read_text(encoding="utf-8"))
    (folder / "asv.conf.json").write_text(json.dumps(settings | {"plugins": [".convbench.pages"]}), encoding="utf-8")
    done = old.run("asv", "publish", "--no-pull", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "html" / "comparison.html").is_file()


@pytest.mark.proof
def test_what_is_measured_brings_numpy_alone(built, tmp_path):
    (sdist,) = (built / "convbench-impls").iterdir()
    measured = Environment(tmp_path)
    without = {**VARIABLES, "CC": "cc"}  # meson asks which compiler there is, and compiles nothing
    command = [measured.bin / "python", "-m", "pip", "install", "--quiet", "-Csetup-args=-Dkernels=false", sdist]
    subprocess.run(command, check=True, env=without)
    assert measured.installed() == {"convbench-impls", "numpy"}
    script = (
        "import impls, numpy as np; o = np.ones((1, 1, 9, 9), np.float32); print(impls.load('cpu.loops')(o, o)[0, 0, 0, 0])"
    )
    assert measured.run("python", "-c", script, cwd=tmp_path).stdout == "81.0\n"


@pytest.mark.proof
def test_a_machine_without_a_network_installs_both(tmp_path, package_index):
    """`make bench-gpu` up to its run, from a wheelhouse that was fetched before."""
    folder = copy_tree(tmp_path / "checkout")
    make = ["make", "--directory", folder, f"PYTHON={sys.executable}"]
    version = "{}.{}".format(*sys.version_info)
    subprocess.run([*make, "wheelhouse", f"GPU_PYTHON={version}"], check=True, capture_output=True)
    offline = {**VARIABLES, "CC": "cc", "PIP_NO_INDEX": "1", "PIP_INDEX_URL": "http://127.0.0.1:9"}
    done = subprocess.run([*make, ".venv-gpu/installed"], env=offline, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    script = "import impls, convbench.cli.main; print(impls.__file__, convbench.__file__)"
    found = subprocess.check_output([folder / ".venv-gpu/bin/python", "-P", "-c", script], env=offline, text=True, cwd="/")
    assert found.split() == [f"{folder}/impls/__init__.py", f"{folder}/convbench/__init__.py"]


NAMES = (
    "import impls, numpy as np; o = np.ones((1, 1, 5, 5), np.float32); print(impls.names(), impls.load('cpu.windows')(o, o))"
)
INSTALL = """
import sys, time
from asv import environment, repo
from convbench.asv.build_commit import load
conf = load("asv.conf.json")
here = next(iter(environment.get_environments(conf, None)))
here.create()
for commit in sys.argv[2:]:
    here.install_project(conf, repo.get_repo(conf), commit)
    print("|", here.run_executable("python", ["-c", sys.argv[1]], cwd="/").strip().replace("\\n", " "))
    print("|", here.run_executable("python", ["-m", "pip", "list", "--format", "freeze"]).replace("\\n", " "))
"""


@pytest.mark.proof
def test_an_older_commit_leaves_nothing_in_asvs_environment(tmp_path, package_index):
    """New, old and new again, in one environment, as `convbench run` goes through the years."""
    if subprocess.run(["git", "cat-file", "-e", BEFORE_BOTH], cwd=ROOT, check=False, capture_output=True).returncode:
        pytest.skip("this clone is shallow: the commit before there were two distributions is missing")
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    for path in git(ROOT, "ls-files").splitlines():
        if (ROOT / path).is_file() and not path.startswith("results/"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, folder / path)
    (folder / "impls" / "conv2d" / "cpu" / "newcomer.py").write_text((ROOT / "impls/conv2d/cpu/windows.py").read_text())
    new = commit(folder, "the working tree")
    settings = json.loads("\n".join(line for line in (ROOT / "asv.conf.json").read_text().splitlines() if "//" not in line))
    settings["matrix"] = {"req": {"numpy": ["2.4.6"]}}
    settings["install_command"] = settings["install_command"][-1:]
    settings["build_command"] = [settings["build_command"][0].replace("--no-deps", "--no-deps -Csetup-args=-Dkernels=false")]
    (folder / "asv.conf.json").write_text(json.dumps(settings))
    old = git(folder, "rev-parse", BEFORE_BOTH)
    done = subprocess.run(
        [sys.executable, "-c", INSTALL, NAMES, new, old, new], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    said = [line for line in done.stdout.splitlines() if line.startswith("|")]
    (first, listed), (before, listed_before), (last, listed_last) = zip(said[::2], said[1::2], strict=True)
    assert first == last
    assert "newcomer" in first
    assert "newcomer" not in before
    assert "25." in before
    for packages, name in ((listed, "convbench-impls"), (listed_before, "convbench"), (listed_last, "convbench-impls")):
        assert [one.partition("==")[0].replace("_", "-") for one in packages.split() if one.startswith("convbench")] == [name]
