"""convbench try shows what a fresh output costs: cpu.auto once more, where freed memory goes back to the system."""

import resource

from benchmarks.commands import try_problem
from benchmarks.commands.interleaved import Candidates
from benchmarks.workloads.problems import Problem


def test_each_call_has_fresh_pages():
    ready = try_problem._into_fresh_memory(Candidates(Problem.parse("n1c1h202w202k8r3s3"), 1))
    ready.call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        ready.call()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults >= 5 * 8 * 200 * 200 * 4 // resource.getpagesize()


def test_a_convolution_has_a_row_of_its_own_for_a_fresh_output():
    shapes = {"operation": "conv2d", "input": [1, 1, 90, 90], "weight": [1, 1, 3, 3], "dtype": "float32"}
    settings = {
        "stride": 1,
        "padding": [0, 0],
        "dilation": 1,
        "groups": 1,
        "names": ["cpu.auto"],
        "threads": 1,
        "seconds": 0.01,
    }
    cells = [event["cell"] for event in try_problem.run({**shapes, **settings}) if "cell" in event]
    assert [(cell["name"], cell["status"]) for cell in cells] == [("cpu.auto", "ok"), (try_problem.FRESH, "ok")]
