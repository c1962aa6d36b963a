"""Cells as tables show them, and benchmarks that they are of."""

import json
import math

import pandas as pd

from convbench.stored import results, roofline

NAN = math.nan


def cell(implementation, row, value=None, spread=0.02, **more):
    """A timed cell where a value is given; q25 and q75 lie `spread` of it to either side."""
    base = {
        "benchmark": "conv2d.Size.time_conv2d",
        "params": (repr(implementation), *map(repr, row)),
        "unit": "seconds",
        "threads": 1,
        "label": "n1c1h7w7k1r3s3p1",
        "dtype": "float32",
        "flops": 2e6,
        "bytes": 1024,
        "baseline": "cpu.torch",
        "device": (implementation or "cpu").replace("gpu", "cuda").partition(".")[0],
        "status": "not measured",
        "value": NAN,
        "family": "direct",
    }
    if value is not None:
        quartiles = {"q25": value * (1 - spread), "q75": value * (1 + spread)} if spread is not None else {}
        base |= {"status": "ok", "value": value, "samples": [value] * 5, **quartiles}
    return {**dict.fromkeys(results.COLUMNS), **base, "implementation": implementation, "row": row, **more}


def frame(cells):
    """Cells with what is derived from them, on a machine of 1 GFLOP/s and 1 GB/s."""
    roof = roofline.Roofline()
    roof.add({"flops": 1e9, "dtype": "float32"}, 1, 1.0)
    roof.add({"bytes": 10**9}, 1, 1.0)
    made = pd.DataFrame(list(cells), columns=results.COLUMNS, dtype=object).astype({"value": float})
    return roofline.derive(made, roof)


def skipped(implementation, row, reason, **more):
    return cell(implementation, row, status="skipped", reason=reason, **more)


def failed(implementation, row, reason, **more):
    return cell(implementation, row, status="failed", reason=reason, **more)


SMALL, LARGE, HUGE = ("7x7",), ("1024x1024",), ("4096x4096",)
NO_GPU = "unavailable: gpu.torch needs a CUDA device; torch sees none here"
MEMORY = {"benchmark": "conv2d.Memory.track_peak_extra_bytes", "unit": "bytes"}
LIMITS = {"benchmark": "ceilings.Ceilings.time_ceiling", "baseline": None, "flops": None, "device": None}
PLAIN = {"benchmark": "lists.time_sort", "baseline": None, "flops": None, "device": None}

CELLS = [
    cell(None, ("copy, 1 MiB", "1"), 7.5e-6, **LIMITS),
    cell(None, ("copy, 1 MiB", "2"), 4.25e-6, spread=0.005, **LIMITS),
    cell(None, ("multiply-add", "1"), 1e-3, spread=0.3, **LIMITS),
    skipped(None, ("multiply-add", "2"), "not on this machine: it has 1 core", **LIMITS),
    cell("cpu.loops", SMALL, 0.105),
    skipped("cpu.loops", LARGE, "too slow here: 1.9e+07 FLOPs, over its declared limit of 2e+06"),
    skipped("cpu.loops", HUGE, "too slow here: 3e+08 FLOPs, over its declared limit of 2e+06"),
    cell("cpu.shift", SMALL, 0.008, spread=0.0004),
    cell("cpu.shift", LARGE, 0.0202, spread=0.12),
    cell("cpu.shift", HUGE, 3.5, spread=None),
    cell("cpu.torch", SMALL, 0.004, spread=0.0),
    cell("cpu.torch", LARGE, 0.01),
    cell("cpu.torch", HUGE, 0.9996, spread=0.02),
    failed("cpu.wrong", SMALL, "WrongAnswer: 3.2 at (0, 0, 1, 1) is off by 1.4, 1e+05 times what rounding allows"),
    failed("cpu.wrong", LARGE, "no time (asv gives no reason)"),
    cell("cpu.wrong", HUGE, 0.5),
    skipped("cpu.none", SMALL, "unsupported: groups=2"),
    skipped("cpu.none", LARGE, "unsupported: groups=2"),
    cell("cpu.none", HUGE),
    *(skipped("gpu.torch", row, NO_GPU) for row in (SMALL, LARGE, HUGE)),
    cell("cpu.later", SMALL),
    cell("cpu.shift", SMALL, 852 * 1024, spread=None, **MEMORY),
    cell("cpu.torch", SMALL, 0, spread=None, **MEMORY),
    cell(None, (), 1.5e-3, **PLAIN),
    failed(None, ("1000",), "ValueError: no", **{**PLAIN, "benchmark": "lists.time_reverse"}),
]


def strict(content):
    """Parse JSON as the standard has it: no NaN, no Infinity."""

    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    return json.loads(content, parse_constant=refuse)
