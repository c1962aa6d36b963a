"""One screen: the fastest of each problem, from which size on another kind wins, and what has no time."""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console
from shown_cells import cell, failed, frame, skipped

from convbench.stored import summary, table

GOLDEN = Path(__file__).parents[2] / "golden" / "summary.txt"
NAMES = ["cpu.direct", "cpu.fft", "cpu.torch"]
SIZE, LAYERS, LIMITS = "conv2d.Size.time_conv2d", "conv2d.Layers.time_conv2d", "ceilings.Ceilings.time_ceiling"
CEILINGS = {
    "'copy into warm memory, 1 MiB'": {"bytes": 1 << 20, "device": "cpu"},
    "'copy into warm memory, 128 MiB'": {"bytes": 1 << 27, "device": "cpu"},
    "'multiply-add, float32'": {"flops": 10**9, "dtype": "float32", "device": "cpu"},
}
KNOWN = {
    SIZE: {"param_names": ["implementation", "size"], "axis": "size", "quick": ["3", "15", "31", "63"]},
    LAYERS: {"param_names": ["implementation", "problem"], "axis": "problem", "quick": ["'n1c64h56w56k64r3s3p1'"]},
    LIMITS: {"param_names": ["ceiling", "threads"], "ceilings": CEILINGS},
}


def swept():
    """Sums of products win on small kernels, and transforms on large ones; the two are alike at 31."""
    for size, times in (
        ("3", (1e-5, 1e-3, 3e-5)),
        ("15", (1e-3, 2e-3, 5e-3)),
        ("31", (2.02e-3, 2e-3, 9e-3)),
        ("63", (9e-3, 2e-3, 0.1)),
    ):
        for name, value in zip(NAMES, times, strict=True):
            yield cell(
                name,
                (size,),
                value,
                params=(repr(name), size),
                family="fft" if name == "cpu.fft" else "direct",
                relative_l2=1e-7,
            )


LAYER = ("n1c64h56w56k64r3s3p1",)
CELLS = [
    *swept(),
    *(cell(name, LAYER, value, benchmark=LAYERS) for name, value in (("cpu.direct", 2e-3), ("cpu.torch", 1e-3))),
    *(cell(name, ("not in the short selection",), 1e-3, benchmark=LAYERS) for name in NAMES),
    *(
        cell(None, (name.strip("'"), "1"), value, benchmark=LIMITS, params=(name, "1"))
        for name, value in zip(CEILINGS, (1e-5, 1e-2, 0.01), strict=True)
    ),
    failed("cpu.wrong", LAYER, "WrongAnswer: by 3", benchmark=LAYERS),
    skipped("gpu.torch", LAYER, "unavailable: it needs a CUDA device", benchmark=LAYERS),
    *(skipped("cpu.loops", (size,), "too slow here: 9 FLOPs") for size in ("31", "63")),
]


def text(cells, width=100, known=KNOWN):
    out = io.StringIO()
    summary.show(frame(cells), known, table.Notes("box, commit 01234567", "cpu.torch"), Console(file=out, width=width))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def test_the_summary_looks_as_before():
    """UPDATE_GOLDEN=1 writes what it looks like now."""
    now = "".join(f"=== {width} characters\n{text(CELLS, width)}" for width in (80, 100, 160))
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(now, encoding="utf-8")
    assert now == GOLDEN.read_text(encoding="utf-8")


def test_a_crossover_is_told_in_words():
    assert "conv2d.Size: direct wins up to 15, fft from 63\n" in text(CELLS)
    for known in ("3", "15"):
        assert "from" not in text([one for one in CELLS if one["row"] == (known,)]).split("speed-up: over")[0]


@pytest.mark.parametrize("problems", [1, 23, 24, 200])
def test_a_screen_is_enough(problems):
    """However many problems and implementations there are, and however long their names."""
    cells = [
        cell(f"cpu.implementation_{n}", (f"{'long/' * 9}{i}",), (n + 1) * 1e-3, benchmark=f"a.B{i}.time_c")
        for i in range(problems)
        for n in range(9)
    ]
    shown = text(cells, known={}).splitlines()
    assert len(shown) < 40
    assert max(map(len, shown)) <= 100
    assert sum("cpu.implementation_0" in line for line in shown) == min(problems, summary.MAX_ROWS)
    assert any(f"and {problems - summary.MAX_ROWS} more problems" in line for line in shown) == (problems > summary.MAX_ROWS)


def test_crossovers_take_the_place_of_problems():
    sweeps = [{**one, "benchmark": f"a.B{i}.time_c"} for i in range(25) for one in swept()]
    shown = text([*sweeps, *CELLS], known={LIMITS: KNOWN[LIMITS]}).splitlines()
    assert len(shown) < 39  # and the line that says how to see more
    assert sum("direct wins up to 15, fft from 63" in line for line in shown) == 5


@pytest.mark.parametrize(
    ("cells", "meant"), [(CELLS, True), ([cell(None, ("1",), 1.0)], False), ([skipped("a", ("1",), "")], False)]
)
def test_there_has_to_be_something_to_choose(cells, meant):
    assert summary.is_meant_for(frame(cells)) == meant
