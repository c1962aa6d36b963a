"""The tests see the checkout's root last, behind an installed package."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))

# What a shell without job control starts in the background ignores Ctrl-C, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Threads of OpenMP that spin while they wait would take the cores from the other tests that run meanwhile.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Tests that run at the same time measure at the same time, which a machine's lock forbids.
os.environ["CONVBENCH_LOCK"] = f"tests {os.getpid()}"


@pytest.fixture(autouse=True)
def every_core():
    """Restore the affinity to all cores after each test, since measurements confine their process."""
    cores = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, cores)


@pytest.fixture(scope="session")
def package_index(tmp_path_factory):
    """Skip tests that have asv install environments, if that is not possible here."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", tmp_path_factory.mktemp("pip")]
    if subprocess.run([*command, "asv_runner==0.3.2"], capture_output=True, check=False).returncode:
        pytest.skip("no package index can be reached, and asv's environments install from one")


@pytest.fixture(scope="session")
def browser():
    """Chromium, which reaches this machine and no other; skips where it, or what drives it, is not installed."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    alone = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[alone])
        yield browser
        browser.close()


def pytest_collection_modifyitems(items):
    """Run the slowest files first, so that parallel runs end together."""
    items.sort(key=lambda item: item.get_closest_marker("first") is None)
