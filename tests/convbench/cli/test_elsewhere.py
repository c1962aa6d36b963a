"""The commands that run on other systems than Linux, in processes without Linux's own functions."""

import json
import subprocess
import sys

import pytest
from published import BENCHMARKS, PLAIN, QUARTILES, TIMES, Published

# macOS has some of this and Windows none. Libraries are imported before, since they have code of their own for each system.
ELSEWHERE = """
import builtins, importlib, io, os, pathlib, signal, sys
import asv.main, click.testing, filelock, jinja2, pandas, PIL.Image, plotly.offline, psutil, rich.console, rich.progress
import ruptures, scipy.optimize, scipy.stats, tempfile
sys.platform = "{platform}"
sys.modules["fcntl"] = None
taken = ("sched_getaffinity", "sched_setaffinity", "geteuid", "getsid", "setsid", "killpg", "getloadavg")
for name in (*taken, "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "pidfd_open"):
    delattr(os, name)

def without_proc(open):
    def opened(file, *rest, **more):
        if str(file).startswith(("/proc/", "/sys/")):
            raise FileNotFoundError(2, "there is no such folder on this system", str(file))
        return open(file, *rest, **more)
    return opened

builtins.open, io.open, os.open = map(without_proc, (builtins.open, io.open, os.open))
psutil.cpu_count = lambda logical=True: 2
asv.util.get_cpu_info, asv.util.get_memsize = lambda: "A processor", lambda: 1 << 30
"""
# Each command is a child, since importing those libraries takes seconds.
CHILDREN = """
import json
answers = []
for number, arguments in enumerate({commands!r}):
    names = [f"{folder}/{{number}}.{{stream}}" for stream in ("out", "err")]
    if not (child := os.fork()):
        for descriptor, name in enumerate(names, 1):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), descriptor)
        sys.argv[1:] = arguments
        if arguments[0] == "publish":
            from convbench.asv.safe_pages import run
        else:
            from convbench.__main__ import main as run
        run()
        sys.exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    answers.append((status, *(pathlib.Path(name).read_text() for name in names)))
print(json.dumps(answers))
"""
READING = {
    ("table", "--machine", "box", "--bench", "."): (0, "sizes.Size.time_it"),
    ("compare", "HEAD~1", "HEAD", "--machine", "box"): (4, "22 unknown"),
    ("history", "--machine", "box"): (0, "2 commits"),
    ("export", "all.csv"): (0, "of 2 commits on 1 machine"),
    ("publish", "--no-pull"): (0, ""),
}
MEASURING = [("gate",), ("run",), ("bisect", "cell")]


def answers(project, outputs, platform, commands):
    """Status, output and errors of each command."""
    script = ELSEWHERE.format(platform=platform) + CHILDREN.format(commands=commands, folder=outputs)
    done = subprocess.run([sys.executable, "-c", script], cwd=project, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(zip(commands, json.loads(done.stdout), strict=True))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Published(tmp_path_factory.mktemp("project"), BENCHMARKS)
    made.add(TIMES, QUARTILES)
    made.add({**TIMES, PLAIN["name"]: [2.0]}, QUARTILES)
    return made


@pytest.mark.slow
def test_what_reads_runs_anywhere_and_what_measures_says_linux_only(project, tmp_path):
    found = answers(project.folder, tmp_path, "darwin", [*READING, *MEASURING])
    for command, (status, shown) in READING.items():
        assert (found[command][0], found[command][2]) == (status, ""), command
        assert shown in found[command][1]
    assert project.page.is_file()
    assert_linux_only(found)


@pytest.mark.proof
def test_what_measures_says_linux_only_on_windows(project, tmp_path):
    assert_linux_only(answers(project.folder, tmp_path, "win32", MEASURING))


def assert_linux_only(found):
    for command in MEASURING:
        status, output, errors = found[command]
        assert (status, output) == (2, "")
        assert errors.startswith(f"Error: Linux only: `convbench {command[0]}` ")
