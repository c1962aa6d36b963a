"""Whether this machine is suitable for benchmarking: what is read and measured, the report, and the exit status."""

import contextlib
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from noises import noisy
from rich.console import Console
from shown_reports import diagnosis, machine

from convbench.cli.main import main
from convbench.common import load
from convbench.doctor import display, facts, noise
from convbench.doctor.verdict import FIT, RESERVATIONS, UNFIT, Diagnosis
from impls.conv2d import choice

ROOT = Path(__file__).parents[3]
NOWHERE = Console(file=io.StringIO())


# The verdict


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        ({}, FIT, []),
        ({"used": 1.2}, UNFIT, ["other processes use 1.2 of 2 cores: stop them"]),
        ({"stolen": 0.2}, UNFIT, ["the host takes 20% of its time: measure at another time, or elsewhere"]),
        ({"stolen": 0.04}, RESERVATIONS, ["the host takes 4.0 % of its time: cells that it disturbed are marked"]),
        ({"usable": (1,)}, RESERVATIONS, ["the only core has to run everything else, too: provide a second core"]),
        ({"available": 2**30}, RESERVATIONS, ["1.00 GiB of memory are free"]),
        ({"governors": ("performance",), "boost": False, "mhz": 3000}, FIT, []),
        ({"governors": ("performance", "powersave")}, RESERVATIONS, ["the frequency governor is powersave"]),
        ({"boost": True}, RESERVATIONS, ["boost is on"]),
        ({"noises": [noisy(0.025)]}, FIT, []),
        (
            {"noises": [noisy(0.02), noisy(0.03, "memory")]},
            RESERVATIONS,
            ["fresh processes of a copy of 32 MiB differ by 3.0 %: "],
        ),
        (
            {"noises": [noisy(0.2)]},
            UNFIT,
            ["fresh processes of a product of two 128x128 matrices differ by 20 %"],
        ),
        ({"boost": True, "used": 2.0}, UNFIT, ["other processes use", "boost is on"]),
    ],
)
def test_verdicts(found, verdict, words):
    one = diagnosis(**found)
    assert one.verdict == verdict
    said = [f"{concern.reason}: {concern.cure}" for concern in one.concerns]
    assert [text[: len(word)] for text, word in zip(said, words, strict=True)] == words


@pytest.mark.parametrize(("others", "verdict"), [(0.3, FIT), (0.9, UNFIT)])
def test_what_ran_beside_the_noise_measurement(others, verdict):
    one = Diagnosis(machine(), [noisy(0.01)], facts.SuiteFacts(), others)
    assert one.verdict == verdict
    reasons = [concern.reason for concern in one.concerns]
    assert reasons == ["other processes used 0.9 cores while the noise was measured"] * (verdict == UNFIT)


# What is read


@pytest.fixture
def system(tmp_path, monkeypatch):
    """The system's description of the cores, by file."""

    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    monkeypatch.setattr(facts, "SYSTEM_CPUS", tmp_path)
    monkeypatch.setattr(facts, "WATCH_SECONDS", 0.05)
    return write


def test_frequency_that_cannot_be_read(system):
    found = facts.read_machine(NOWHERE)
    assert (found.governors, found.boost, found.mhz) == (None, None, None)
    assert dict(display._machine_rows(found))["frequency"].startswith("not readable here")


@pytest.mark.parametrize(
    ("files", "boost"),
    [
        ({"cpufreq__boost": "1\n"}, True),
        ({"cpufreq__boost": "0\n"}, False),
        ({"intel_pstate__no_turbo": "0\n"}, True),
        ({"intel_pstate__no_turbo": "1\n"}, False),
    ],
)
def test_frequency(system, files, boost):
    core = load.core_numbers()[-1]
    governors = {f"cpu{n}__cpufreq__scaling_governor": name for n, name in enumerate(["powersave\n", "performance\n"])}
    system(**files, **governors, **{f"cpu{core}__cpufreq__scaling_cur_freq": "3100000\n"})
    found = facts.read_machine(NOWHERE)
    assert (found.governors, found.boost, found.mhz) == (("performance", "powersave"), boost, 3100)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is there")
def test_a_compiler_with_options(system, monkeypatch):
    monkeypatch.setenv("CC", "env cc -O2")
    assert facts.read_machine(NOWHERE).compiler == facts.compiler() is not None


def test_a_compiler_that_is_not_there(system, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    found = facts.read_machine(NOWHERE)
    assert found.compiler is None
    assert "none; the Cython kernels need one" in dict(display._machine_rows(found))["compiler"]


# The suite


@pytest.mark.slow
def test_the_suite_reports_what_can_run_here_and_what_the_others_lack():
    command = [sys.executable, "-m", "benchmarks", "doctor"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    told = [event for event in events if "implementation" in event]
    lacks = {(event["operation"], event["implementation"]): event["lacks"] for event in told}
    assert len(lacks) == len(told) > 40
    assert lacks["conv2d", "cpu.loops"] is None
    assert all(text is None or len(text) > 20 for text in lacks.values())
    (versions,) = (event["versions"] for event in events if "versions" in event)
    (pools,) = (event["pools"] for event in events if "pools" in event)
    assert [event["instructions"] for event in events if "instructions" in event] == [choice.instruction_set()]
    assert {"python", "numpy"} <= versions.keys()
    assert all(count >= 1 for count in pools.values())


SUITE = """
import json, sys
if sys.argv[1] != "doctor":
    sys.exit("no verb is called that")
for event in (
    {"preparing": "cpu.a"},
    {"implementation": "cpu.a", "operation": "conv2d", "lacks": None},
    {"implementation": "gpu.a", "operation": "conv2d", "lacks": "gpu.a needs a device"},
    {"implementation": "gpu.b", "operation": "conv2d", "lacks": "gpu.b needs a device"},
    {"implementation": "gpu.c", "operation": "other", "lacks": "gpu.c needs a compiler"},
    {"instructions": "avx9"},
    {"versions": {"a": "1.0"}},
    {"pools": {"a pool": 2}},
):
    print(json.dumps(event))
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An asv project, in the current folder; a quick and quiet look at the machine."""
    folder = tmp_path / "project"
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "asv.conf.json").write_text('{"version": 1, "project": "other", "repo": "."}')
    monkeypatch.chdir(folder)
    monkeypatch.setattr(noise, "ROUNDS", 3)
    monkeypatch.setattr(noise, "_round", lambda kind, generator: ([1e-3, 1.001e-3], [1.001e-3, 1e-3]))
    monkeypatch.setattr(load, "usage", lambda seconds: (0.0, 0.0))
    monkeypatch.setattr(facts, "cpu_seconds_of_others", lambda: 0.0)
    monkeypatch.setattr(facts, "SYSTEM_CPUS", folder)
    return folder


def run(*arguments):
    return CliRunner().invoke(main, ["doctor", *arguments], catch_exceptions=False)


def test_reasons_are_told_once(project):
    (project / "benchmarks" / "__main__.py").write_text(SUITE)
    done = run("--json", "out.json")
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(Path("out.json").read_text())
    assert found["verdict"] == FIT
    assert found["suite"]["ready"] == {"conv2d": ["cpu.a"]}
    assert found["suite"]["lacking"] == {
        "conv2d": {"needs a device": ["gpu.a", "gpu.b"]},
        "other": {"needs a compiler": ["gpu.c"]},
    }
    assert (found["suite"]["versions"]["a"], found["suite"]["pools"]) == ("1.0", {"a pool": 2})
    assert "gpu.a, gpu.b: needs a device" in done.stdout
    assert re.search(r"kernels +compiled for avx9 *\n", done.stdout)
    assert done.stdout.splitlines()[-1] == "this machine is suitable for benchmarking"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (None, "other has no `python -m benchmarks doctor`"),
        ("import sys; sys.exit('no verb is called that')", "no verb is called that"),
        ("""print('{"error": "broken"}')""", "broken"),
        ("print('good morning')", "invalid response from the benchmark process: 'good morning'"),
    ],
)
def test_a_suite_that_says_nothing(project, program, words):
    if program:
        (project / "benchmarks" / "__main__.py").write_text(program)
    done = run()
    assert (done.exit_code, done.stderr) == (0, "")
    assert words in " ".join(done.stdout.split())
    assert "numpy" in done.stdout


def test_exit_status(project, monkeypatch):
    monkeypatch.setattr(load, "usage", lambda seconds: (2.0, 0.0))
    assert run().exit_code == 1
    monkeypatch.setattr(load, "usage", lambda seconds: (0.0, 0.05))
    assert run().exit_code == 0


@pytest.mark.parametrize("arguments", [["--json", "missing/out.json"], ["--jsn"], ["here"]])
def test_mistakes(project, arguments):
    done = run(*arguments)
    assert done.exit_code
    assert done.stderr.splitlines()[-1].startswith("Error: ")


# The command, which watches the load for less long.
HASTY = """
from convbench.cli.main import main
from convbench.doctor import facts
facts.WATCH_SECONDS = 0.05
main(["doctor"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(number, tmp_path):
    """In real processes, while one of them measures: one sentence, and none of them is left."""

    def measuring():
        with contextlib.suppress(psutil.Error):
            return [
                child for child in mine.children(recursive=True) if any("noise_worker" in word for word in child.cmdline())
            ]

    (tmp_path / "asv.conf.json").write_text('{"version": 1, "project": "other", "repo": "."}')
    with subprocess.Popen(
        [sys.executable, "-c", HASTY], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        mine = psutil.Process(process.pid)
        give_up = time.monotonic() + 60
        while not (children := measuring()) and time.monotonic() < give_up:
            time.sleep(0.05)
        assert children
        process.send_signal(number)
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, out) == (1, "")
    assert errors == "Error: interrupted: there is no verdict, and nothing was left running\n"
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
