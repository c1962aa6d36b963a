"""The commands that run on other systems than Linux, in a process without Linux's own functions."""

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
sys.argv[1:] = {arguments!r}
"""
COMMAND = "from convbench.__main__ import main; main()"
PUBLISH = "from convbench.asv import safe_pages; safe_pages.run()"


def call(folder, *arguments, platform="darwin", program=COMMAND):
    script = ELSEWHERE.format(platform=platform, arguments=arguments) + program
    return subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Published(tmp_path_factory.mktemp("project"), BENCHMARKS)
    made.add(TIMES, QUARTILES)
    made.add({**TIMES, PLAIN["name"]: [2.0]}, QUARTILES)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status", "shown"),
    [
        (["table", "--machine", "box", "--bench", "."], 0, "sizes.Size.time_it"),
        (["compare", "HEAD~1", "HEAD", "--machine", "box"], 4, "22 unknown"),
        (["history", "--machine", "box"], 0, "2 commits"),
        (["export", "all.csv"], 0, "of 2 commits on 1 machine"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_only_reads_runs_anywhere(project, command, status, shown):
    done = call(project.folder, *command)
    assert (done.returncode, done.stderr) == (status, "")
    assert shown in done.stdout


@pytest.mark.slow
def test_the_page_is_written_anywhere(project):
    done = call(project.folder, "publish", "--no-pull", program=PUBLISH)
    assert (done.returncode, done.stderr) == (0, "")
    assert project.page.is_file()


@pytest.mark.slow
@pytest.mark.parametrize("command", [["gate"], ["run"], ["bisect", "cell"]], ids=" ".join)
@pytest.mark.parametrize("platform", ["darwin", pytest.param("win32", marks=pytest.mark.proof)])
def test_what_measures_says_linux_only(project, command, platform):
    done = call(project.folder, *command, platform=platform)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: Linux only: `convbench {command[0]}` ")
