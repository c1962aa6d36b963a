"""Projects with made-up results, published by asv, for the tests of pages."""

import itertools
import json
import math
import os
import subprocess
import sys

import compressed
from gate_projects import Sample

COLUMNS = [
    "result",
    "params",
    "version",
    "started_at",
    "duration",
    "stats_ci_99_a",
    "stats_ci_99_b",
    "stats_q_25",
    "stats_q_75",
]
FACTS = {
    "machine": "box",
    "arch": "x86_64",
    "cpu": "A processor",
    "num_cpu": "2",
    "os": "Linux",
    "ram": "8 GiB",
    "python": "3.11",
}


def benchmark(name, names, others=(), **more):
    """An entry of benchmarks.json; others: (parameter, its values as Python writes them) beside the implementation."""
    params = [[repr(one) for one in names], *(list(values) for _, values in others)]
    return {
        "name": name,
        "code": "",
        "type": "time",
        "unit": "seconds",
        "version": "1",
        "timeout": 60,
        "param_names": ["implementation", *(key for key, _ in others)],
        "params": params,
        **more,
    }


# A suite with all that the page knows of, and one benchmark that has nothing to do with it.
NAMES = ["cpu.loops", "cpu.fast", "gpu.fast", "im2col.naive"]
KINDS = [("cpu", "direct"), ("cpu", "winograd"), ("cuda", "direct"), ("cpu", "im2col")]
DECLARED = {name: {"device": d, "family": f, "summary": name} for name, (d, f) in zip(NAMES, KINDS, strict=True)}
SIZES = [8, 64, 256]
PROBLEMS = {repr(f"{n}x{n}"): {"label": f"h{n}", "dtype": "float32", "flops": 18 * n * n, "bytes": 8 * n * n} for n in SIZES}
SWEEP = benchmark(
    "sizes.Size.time_it",
    NAMES,
    [("size", list(PROBLEMS))],
    problems=PROBLEMS,
    axis="size",
    baseline="cpu.loops",
    implementations=DECLARED,
)
THREADS = benchmark(
    "sizes.Threads.time_it", NAMES[:2], [("size", ["'64x64'"]), ("threads", ["1", "2"])], implementations=DECLARED
)
MEMORY = benchmark(
    *("sizes.Memory.track_it", NAMES[:2], [("size", ["'64x64'"])]),
    type="track",
    unit="bytes",
    problems=PROBLEMS,
    axis="size",
    implementations=DECLARED,
)
CEILINGS = {
    "name": "sizes.Ceilings.time_it",
    "code": "",
    "type": "time",
    "unit": "seconds",
    "version": "1",
    "timeout": 60,
    "param_names": ["ceiling", "threads"],
    "params": [["'add'", "'small'", "'large'"], ["1"]],
    "ceilings": {
        "'add'": {"flops": 1e9, "dtype": "float32"},
        "'small'": {"bytes": 1 << 15},
        "'large'": {"bytes": 1 << 26},
    },
}
PLAIN = {
    "name": "other.time_it",
    "code": "",
    "type": "time",
    "unit": "seconds",
    "version": "1",
    "param_names": [],
    "params": [],
}
BENCHMARKS = {entry["name"]: entry for entry in (SWEEP, THREADS, MEMORY, CEILINGS, PLAIN)}
TIMES = {
    # The loops are faster where nearly nothing is to be done.
    SWEEP["name"]: [1.0e-6, 6.1e-5, 1.04e-3, 2.0e-6, 9.87e-6, 1.234e-4, math.nan, math.nan, math.nan, 5.5e-6, None, 2.2e-3],
    THREADS["name"]: [6.1e-5, 6.2e-5, 9.9e-6, 5.1e-6],
    MEMORY["name"]: [0.0, 4096.0],
    CEILINGS["name"]: [0.02, 4e-7, 6e-3],
    PLAIN["name"]: [1.0],
}
QUARTILES = {SWEEP["name"]: ([t and t * 0.98 for t in TIMES[SWEEP["name"]]], [t and t * 1.03 for t in TIMES[SWEEP["name"]]])}
CELLS = list(itertools.product(*SWEEP["params"]))
LINES = [
    {
        "benchmark": SWEEP["name"],
        "params": list(params),
        "run": "1",
        "ended": 1_700_000_000.0 + i,
        "load": 0.1,
        "threads": {"openblas": 1},
        "versions": {"numpy": "2.4.6"},
        "relative_l2": None if "gpu" in params[0] else i * 1e-8,
        **({"status": "skipped", "reason": "unavailable: gpu.fast needs a GPU"} if "gpu" in params[0] else {"status": "ok"}),
    }
    for i, params in enumerate(CELLS)
]


class Published:
    """A project whose commits have results; publish() writes html/."""

    def __init__(self, folder, benchmarks, plugins=(".convbench.pages",)):
        self.sample = Sample(folder)
        conf = json.loads((folder / "asv.conf.json").read_text())
        self.sample.commit({"asv.conf.json": json.dumps(conf | {"plugins": list(plugins)})}, "configured")
        self.folder, self.results, self.html = folder, folder / "results", folder / "html"
        (self.results / "box").mkdir(parents=True)
        self.benchmarks = benchmarks
        (self.results / "benchmarks.json").write_text(json.dumps({**benchmarks, "version": 2}))
        (self.results / "box" / "machine.json").write_text(json.dumps(FACTS | {"version": 1}))

    def add(self, times, quartiles=None, lines=(), message="measured"):
        """A commit with results: times, and (lower, upper) quartiles, by benchmark; lines for the side file."""
        commit = self.sample.commit({}, message)
        date = int(self.sample.git("show", "-s", "--format=%ct", commit)) * 1000
        found = {}
        for name, values in times.items():
            lower, upper = (quartiles or {}).get(name, (values, values))
            none = [None] * len(values)
            found[name] = [values, self.benchmarks[name]["params"], "1", date, 1.0, none, none, list(lower), list(upper)]
        content = {
            "commit_hash": commit,
            "env_name": "env-py3.11",
            "date": date,
            "params": FACTS,
            "python": "3.11",
            "requirements": {},
            "env_vars": {},
            "result_columns": COLUMNS,
            "results": found,
            "durations": {},
            "version": 2,
        }
        self.path = self.results / "box" / f"{commit[:8]}-env-py3.11.json"
        self.path.write_text(json.dumps(content))
        compressed.write_text(self.path.with_suffix(".cells.jsonl.gz"), "".join(json.dumps(line) + "\n" for line in lines))
        return commit

    def publish(self):
        """What asv publish printed."""
        command = [sys.executable, "-m", "asv", "publish", "--no-pull"]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, errors="replace", check=False, env=os.environ
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    @property
    def page(self):
        """The comparison page."""
        return self.html / "comparison.html"
