"""The comparison page of very many results: how long it takes to write and to open, and how large it is."""

import random
import subprocess
import sys
import time

import pytest
from published import Published, benchmark

from convbench.pages import changes

# asv publish, but for its step detection: that of 5,000 series of 200 takes ten minutes, and says nothing of the page.
PUBLISH = """
import asv.main, asv.step_detect

asv.step_detect.detect_steps = lambda y, w: [(0, 100, y[0], y[0], 0.0), (100, len(y), y[-1], y[-1], 0.0)]
asv.main.main()
"""


@pytest.mark.proof  # two minutes
def test_5000_series_over_200_commits(tmp_path, opened, monkeypatch):
    generator = random.Random(0)
    names = [f"family{i}.implementation{i}" for i in range(50)]
    rows = [repr(f"{8 * i}x{8 * i}") for i in range(1, 21)]
    many = {f"b{k}.Sweep.time_it": benchmark(f"b{k}.Sweep.time_it", names, [("size", rows)]) for k in range(5)}
    made = Published(tmp_path / "project", many)
    base = {name: [10 ** generator.uniform(-6, -1) for _ in range(1000)] for name in many}
    for number in range(200):
        shift = 1.2 if number > 100 else 1.0
        times = {n: [float(f"{t * shift * generator.gauss(1, 0.02):.5g}") for t in values] for n, values in base.items()}
        made.add(times, {n: ([0.99 * t for t in v], [1.01 * t for t in v]) for n, v in times.items()})
    command = [sys.executable, "-u", "-c", PUBLISH, "publish", "--no-pull"]
    process = subprocess.Popen(command, cwd=made.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [(time.monotonic(), line) for line in process.stdout]
    assert process.wait() == 0, lines[-5:]
    place = next(i for i, (_, line) in enumerate(lines) if "for Comparison" in line)
    (began, _), (ended, _) = lines[place - 1 : place + 1]  # a line ends when the next step begins
    assert made.page.stat().st_size < 15e6
    start = time.monotonic()
    page = opened(made.page)
    page.locator("#table td").first.wait_for()
    opening = time.monotonic() - start
    size = made.page.stat().st_size / 1e6
    print(
        f"{ended - began:.1f} s of asv publish's {lines[-1][0] - lines[0][0]:.0f} s; {size:.1f} MB; opened in {opening:.2f} s"
    )
    assert ended - began < 15
    assert opening < 3
    assert page.locator("#history tbody tr").count() == changes.MAX_CHANGES
    assert f"{5000 - changes.MAX_CHANGES} smaller changes are left out" in page.locator("#history").inner_text()
