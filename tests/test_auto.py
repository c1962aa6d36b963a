"""impls.conv2d and cpu.auto: measured problems decide, those most like a call above all, or a rule; explain() tells."""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import timeit
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from test_cli_errors import settings
from test_commits import commit, git
from test_contract import PACKAGE, python

import impls
import impls.conv2d.cpu.auto as auto  # as a module, though the package above it is the operation
from benchmarks import draw, tuning
from benchmarks.problems import Problem
from impls.conv2d import choice

ROOT = Path(__file__).parents[1]
PROBLEMS = draw.draw(60, seed=7)
X, W = np.random.default_rng(0).random((2, 1, 32, 9, 9), np.float32)
COMPILED = choice.instruction_set() is not None
needs_compiled = pytest.mark.skipif(not COMPILED, reason="the Cython kernels are not built: install with a C compiler")


def asked(problem):
    return choice.problem(problem.input_shape, problem.weight_shape, **problem.arguments)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Writes a table of measurements in place of the real one: put({(instruction set, threads): [entries]})."""
    caches = (choice._tables, choice._table, choice.function)

    def put(tables):
        made = [
            {
                "instruction_set": instructions,
                "threads": count,
                "machine": "box",
                "commit": "01234567",
                "date": "2026-11-21",
                "problems": entries,
            }
            for (instructions, count), entries in tables.items()
        ]
        (tmp_path / "auto.toml").write_text("".join(map(tuning._text, made)))
        for cache in caches:
            cache.cache_clear()

    monkeypatch.setattr(choice, "TABLE", tmp_path / "auto.toml")
    monkeypatch.setattr(choice, "instruction_set", lambda: "avx9")
    put({})
    yield put
    for cache in caches:
        cache.cache_clear()


def entry(input, weight, us, **settings):
    return {"input": input, "weight": weight, **settings, "us": us}


LAYER = entry([1, 64, 56, 56], [64, 64, 3, 3], {"cpu.shift": 10.0, "cpu.fft": 12.5}, padding=1)
FILTER = entry([1, 1, 512, 512], [1, 1, 3, 3], {"cpu.windows": 100.0}, padding=1)


# Which is picked


@pytest.mark.parametrize(
    ("shapes", "settings", "name", "runner_up"),
    [
        (((1, 64, 56, 56), (64, 64, 3, 3)), {"padding": 1}, "cpu.shift", "cpu.fft"),
        (((2, 100, 40, 50), (48, 100, 3, 3)), {"padding": 1}, "cpu.shift", "cpu.fft"),
        (((1, 1, 600, 800), (1, 1, 5, 5)), {}, "cpu.windows", None),
        (((4, 1, 28, 28), (2, 1, 3, 3)), {"padding": "same"}, "cpu.windows", None),
    ],
)
def test_the_nearest_measured_problem_decides(table, shapes, settings, name, runner_up):
    table({("avx9", 1): [LAYER, FILTER]})
    found = impls.explain(*shapes, **settings)
    assert found.implementation.name == name
    assert runner_up in (None, found.runner_up)
    assert name in found.alike[0].times


def test_the_nearer_counts_for_more():
    """Channels halved, and doubled twice; who is missing counts as LATE."""
    near, far = (
        choice.measured(entry([1, c, 9, 9], [8, c, 3, 3], times))
        for c, times in [(32, {"cpu.shift": 1.0, "cpu.fft": 1.5}), (256, {"cpu.fft": 2.0, "cpu.windows": 2.5})]
    )
    known = choice.Known((far, near))
    alike, expected = known.expect(choice.problem((1, 64, 9, 9), (8, 64, 3, 3)))
    assert alike == (near, far)
    assert list(expected) == ["cpu.fft", "cpu.shift", "cpu.windows"]
    assert expected["cpu.shift"] < choice.LATE**0.5 < (expected["cpu.windows"] / 1.25**0.5)
    assert known.expect(near.problem) == ((near,), {"cpu.shift": 1.0, "cpu.fft": pytest.approx(1.5)})


@examples(deadline=None)  # the first imports scikit-learn
@given(st.integers(0, 1000), st.integers(1, 20), st.randoms(use_true_random=False))
def test_all_that_was_measured_decides_and_what_was_measured_itself_alone(seed, count, chance):
    """Against scikit-learn, whose ridge regression with this kernel is the mean of the Gaussian process."""
    ridges = pytest.importorskip("sklearn.kernel_ridge")
    names = ["cpu.shift", "cpu.fft", "cpu.torch", "cpu.loops"]
    times = [{name: 10 ** chance.uniform(-6, -5) for name in names} for _ in range(count)]
    every = [choice.measured(tuning._entry(p.label, t)) for p, t in zip(draw.draw(count, seed), times, strict=True)]
    known, other = choice.Known(tuple(every)), asked(draw.draw(1, seed + 1)[0])
    assume(other not in [one.problem for one in every])
    alike, expected = known.expect(other)
    assert len(alike) == min(count, choice.ALIKE)
    taken = np.log([[one.behind(name) for name in expected] for one in every])
    ridge = ridges.KernelRidge(alpha=choice.UNCERTAIN, kernel="laplacian", gamma=1)
    ridge.fit([choice.place(one.problem) for one in every], taken - taken.mean(axis=0))
    logarithms = ridge.predict([choice.place(other)])[0] + taken.mean(axis=0)
    assert np.log(list(expected.values())) == pytest.approx(logarithms, abs=1e-9)
    order = [late * (choice.CAUTION if name == "cpu.torch" else 1) for name, late in expected.items()]
    assert order == sorted(order)
    for one in every:
        assert known.expect(one.problem)[0] == (one,)


def test_a_problem_in_the_place_of_another_is_not_that_problem():
    """Strides that differ in their order, of one product: whoever decides alone must be the problem itself."""
    times = {"cpu.shift": 1.0, "cpu.fft": 1.5}
    one, other = (
        choice.measured(entry([1, 8, 9, 9], [8, 8, 3, 3], times, stride=list(s), padding=1)) for s in ((1, 2), (2, 1))
    )
    assert choice.Known((one, other)).expect(other.problem)[0] == (other,)
    assert choice.Known((one,)).expect(other.problem)[1]["cpu.fft"] == pytest.approx(1.5)
    assert choice.Known((one,)).expect(one.problem._replace(dtype="float64"))[0] == (one,)


def test_torch_is_left_for_those_alone_who_should_be_faster_by_more_than_a_little(table):
    near = entry([1, 64, 56, 56], [64, 64, 5, 5], {"cpu.shift": 100.0, "cpu.torch": 101.0})
    table({("avx9", 1): [near]})
    itself, other = impls.explain((1, 64, 56, 56), (64, 64, 5, 5)), impls.explain((1, 64, 60, 60), (64, 64, 5, 5))
    assert (itself.implementation.name, other.implementation.name) == ("cpu.shift", "cpu.torch")
    assert "the runner-up is cpu.shift, expected to take 0.99 times as long, too little less to leave torch for it" in str(
        other
    )


def test_exact_leaves_transforms_out(table):
    table({("avx9", 1): [entry(LAYER["input"], LAYER["weight"], {"cpu.fft": 1.0, "cpu.shift": 2.0}, padding=1)]})
    shapes = (1, 64, 56, 56), (64, 64, 3, 3)
    assert impls.explain(*shapes, padding=1).implementation.name == "cpu.fft"
    assert impls.explain(*shapes, padding=1, exact=True).implementation.name == "cpu.shift"


def test_who_cannot_compute_it_is_passed_over(table):
    best = {"cpu.scipy_ndimage": 1.0, "cpu.shift": 2.0}  # the first has stride 1 alone
    table({("avx9", 1): [entry([1, 8, 32, 32], [8, 8, 3, 3], best)]})
    assert impls.explain((1, 8, 32, 32), (8, 8, 3, 3), stride=2).implementation.name == "cpu.shift"


@pytest.mark.parametrize(("threads", "nearest"), [(1, 1), (2, 1), (3, 4), (4, 4), (64, 4)])
def test_the_nearest_number_of_threads(table, monkeypatch, threads, nearest):
    by = {1: "cpu.shift", 4: "cpu.windows"}
    table({("avx9", count): [entry([1, 8, 32, 32], [8, 8, 3, 3], {name: 1.0})] for count, name in by.items()})
    monkeypatch.setattr(choice, "threads", lambda: threads)
    assert impls.explain((1, 8, 32, 32), (8, 8, 3, 3)).implementation.name == by[nearest]


@pytest.mark.parametrize("there", [{}, {("neon", 1): [LAYER]}, {("avx9", 1): []}])
def test_a_rule_where_nothing_was_measured(table, there):
    table(there)
    found = impls.explain((1, 1, 64, 64), (1, 1, 3, 3))
    assert (found.alike, found.table) == ((), None)
    assert found.implementation.name in choice.RULES["few channels"]
    assert "by rule: few channels; nothing was measured with avx9" in str(found)


FOR_WIDE_VECTORS = ["n1c15h99w99k16r3s3", "n2c90h99w99k18r3s3t2g2"]
NARROW = ["n9c1h999w999k8r3s3", "n1c8h97w97k8r3s3", "n4c16h999w11k16r3s3g2", "n1c8h300w300k4r3s3t2"]
PIXELS = (
    "n1c999h99w99k999r1s1",
    "n1c20h100w100k10r1s1",
    "n1c20h100w101k10r1s1",
    "n1c50h200w200k40r1s1t2",
    "n1c50h200w202k40r1s1t2",
    "n1c10h300w300k50r1s1t3",
    "n1c10h300w303k50r1s1t3",
)
WITH_WIDE_VECTORS = {
    "n9c1h999w999k9r3s3": "one channel",
    "n1c10h200w200k14r3s3t3": "layer for wide vectors",
    **dict.fromkeys(PIXELS, "1x1 layer"),
    **dict.fromkeys(FOR_WIDE_VECTORS, "layer for wide vectors"),
    **dict.fromkeys(NARROW, "narrow layer for wide vectors"),
}


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("n1c6h99w99k6r3s3t2", "few channels"),
        ("n1c7h99w99k6r3s3t2", "small layer"),
        ("n1c3h99w99k3r3s3t3", "few channels"),
        ("n1c4h99w99k3r3s3t3", "small layer"),
        ("n9c1h999w999k9r3s3", "few channels"),
        ("n9c1h999w999k9r3s3t2", "one channel"),
        ("n9c1h999w999k8r3s3", "large layer"),
        ("n1c16h99w99k16r3s3", "3x3 layer"),
        ("n1c15h99w99k16r3s3", "large layer"),  # 40.6 million FLOPs
        ("n2c90h99w99k18r3s3t2g2", "large layer"),
        ("n2c90h99w99k16r3s3t2g2", "large layer"),  # 8 outputs a group
        ("n1c15h98w98k16r3s3", "small layer"),  # 39.8 million
        ("n1c8h97w97k8r3s3", "large layer"),  # 10.4 million
        ("n1c8h95w95k8r3s3", "small layer"),  # 9.96 million
        ("n4c16h999w11k16r3s3g2", "large layer"),  # 9 columns
        ("n4c16h999w10k16r3s3g2", "large layer"),  # 8
        ("n1c8h300w300k4r3s3t2", "large layer"),
        ("n1c8h400w400k4r3s3t3", "large layer"),
        ("n1c9h97w97k8r3s3", "large layer"),
        ("n1c8h97w97k9r3s3", "small layer"),
        ("n1c999h99w99k999r1s1", "large layer"),
        ("n1c20h100w100k10r1s1", "small layer"),  # 4 million
        ("n1c20h100w101k10r1s1", "large layer"),
        ("n1c50h200w200k40r1s1t2", "small layer"),  # 40 million
        ("n1c50h200w202k40r1s1t2", "large layer"),
        ("n1c10h300w300k50r1s1t3", "small layer"),  # 10 million
        ("n1c10h300w303k50r1s1t3", "large layer"),
        ("n1c10h200w200k14r3s3t3", "large layer"),  # 11 million
    ],
)
def test_which_rule_holds(label, kind):
    problem = asked(Problem.parse(label))
    assert choice._kind(problem, "avx2") == choice._kind(problem, None) == kind
    assert choice._kind(problem, "avx512") == WITH_WIDE_VECTORS.get(label, kind)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.label)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("by_rule", [False, True])
def test_what_is_picked_can_compute_it(problem, exact, by_rule):
    found = choice.choose(asked(problem), 1, exact, by_rule)
    assert found.implementation.device == "cpu"
    assert found.implementation.unsupported(problem.input_shape, problem.weight_shape, **problem.arguments) is None
    assert found.implementation.name != "cpu.auto"
    if exact:
        assert not {impls.load(name).family for name in (found.implementation.name, found.runner_up)} & {"winograd", "fft"}
    if by_rule:
        assert found.alike == ()


# The drop-in


def test_the_package_is_the_operation():
    output = impls.conv2d(X, W[:, :, :3, :3], padding="same")
    assert np.allclose(output, impls.load("cpu.loops")(X, W[:, :, :3, :3], padding="same"), rtol=1e-4)
    assert impls.conv2d.arguments is sys.modules["impls.conv2d.arguments"]
    assert auto is sys.modules["impls.conv2d.cpu.auto"]
    for bad in [{"stride": 0}, {"padding": "full"}, {"groups": 5}]:
        with pytest.raises(ValueError, match=next(iter(bad))) as here:
            impls.conv2d(X, W, **bad)
        with pytest.raises(ValueError, match=re.escape(str(here.value))):
            impls.load("cpu.loops")(X, W, **bad)


@needs_compiled
@given(st.sampled_from([p for p in PROBLEMS if p.flops < 2e7]), st.booleans(), st.sampled_from(["float32", "float64"]))
@examples(deadline=None)
def test_it_is_what_it_picks(problem, exact, dtype):
    rng = np.random.default_rng(1)
    arrays = [rng.random(shape).astype(dtype) for shape in (problem.input_shape, problem.weight_shape, (problem.k,))]
    picked = impls.explain(*arrays[:2], **problem.arguments, exact=exact).implementation
    assert np.array_equal(impls.conv2d(*arrays, **problem.arguments, exact=exact), picked(*arrays, **problem.arguments))


BARE = """
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ("numpy", "impls") and name.partition(".")[0] not in sys.stdlib_module_names:
            raise ImportError(f"{name} is hidden", name=name)
sys.meta_path.insert(0, Hide())
import numpy as np, impls
X, W = np.arange(2 * 12 * 49.0).reshape(2, 12, 7, 7), np.arange(12 * 12 * 9.0).reshape(12, 12, 3, 3)
X, W = (X % 7).astype("float32"), (W % 5).astype("float32")
same = [
    bool(np.array_equal(impls.conv2d(*arrays, padding=1), impls.load("cpu.loops")(*arrays, padding=1)))
    for arrays in ((X, W), (X[:, :1], W[:1, :1]))
]
print(json.dumps({"same": same, "said": str(impls.explain(X, W))}))
"""


def test_numpy_alone_is_enough(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "impls", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    found = python(BARE, tmp_path)
    assert found["same"] == [True, True]
    assert "by rule: small layer; the compiled kernels, for which measurements hold, are not there" in found["said"]
    assert re.search(r"cpu\.cython_packed cannot run here: .*pip install \.", found["said"])


# What is told


def test_an_explanation_names_its_measurement(table):
    table({("avx9", 1): [LAYER, FILTER]})
    assert str(impls.explain((1, 48, 60, 60), (64, 48, 3, 3), padding=1)).splitlines() == [
        "cpu.shift for input 1x48x60x60, weight 64x48x3x3, padding 2x2 in all, float32",
        "the runner-up is cpu.fft, expected to take 1.23 times as long",
        "the measured problems most like it, the nearest first:",
        "  input 1x64x56x56, weight 64x64x3x3, padding 2x2 in all, float32: cpu.shift 10 us, cpu.fft 12.5 us",
        "  input 1x1x512x512, weight 1x1x3x3, padding 2x2 in all, float32: cpu.windows and not these",
        "measured on box (avx9, 1 thread), commit 01234567, 2026-11-21",
    ]
    assert str(impls.explain(LAYER["input"], LAYER["weight"], padding=1)).splitlines()[1:4] == [
        "the runner-up is cpu.fft, expected to take 1.25 times as long",
        "the measured problems most like it, the nearest first:",
        "  input 1x64x56x56, weight 64x64x3x3, padding 2x2 in all, float32: cpu.shift 10 us, cpu.fft 12.5 us",
    ]


def test_arrays_are_explained_like_their_shapes():
    assert str(impls.explain(X, W)) == str(impls.explain(X.shape, W.shape))
    assert "float64" in str(impls.explain(X.astype(float), W.astype(float)))
    with pytest.raises(TypeError, match="dtype must be float32 or float64"):
        impls.explain(X.astype("int8"), W.astype("int8"))
    with pytest.raises(ValueError, match="do not fit groups=5"):
        impls.explain(X, W, groups=5)


@pytest.mark.alone
@needs_compiled
def test_picking_takes_less_than_five_microseconds():
    input, weight = np.ones((1, 1, 8, 8), np.float32), np.ones((1, 1, 3, 3), np.float32)
    picked = impls.explain(input, weight).implementation
    impls.conv2d(input, weight)

    calls = [picked, impls.load("cpu.auto"), impls.conv2d]
    fastest = dict.fromkeys(range(3), float("inf"))
    for _ in range(200):  # in turn, lest a busy moment meet one of them alone
        for i, call in enumerate(calls):
            fastest[i] = min(fastest[i], timeit.timeit(lambda call=call: call(input, weight), number=100) / 100)
    assert max(fastest[1], fastest[2]) - fastest[0] < 5e-6


# What it is tuned on, and the table


@given(st.integers(0, 1000))
def test_drawn_problems_are_those_of_their_seed(seed):
    found = draw.draw(20, seed)
    assert [p.label for p in found] == [p.label for p in draw.draw(20, seed)]
    assert len({p.label for p in found}) == 20
    assert all(draw.LEAST <= p.flops <= draw.MOST and Problem.parse(p.label) == p for p in found)


def write(tmp_path, monkeypatch, times, threads=1, instructions="avx9"):
    monkeypatch.setattr(tuning, "SETTINGS", tmp_path / "tune.toml")
    (tmp_path / "tune.toml").write_text(f'table = "{tmp_path / "auto.toml"}"\n')
    monkeypatch.setattr(choice, "instruction_set", lambda: instructions)
    (tmp_path / "times.json").write_text(json.dumps(times))
    about = {"machine": "box", "commit": "01234567", "date": "2026-11-21"}
    (said,) = tuning.table({"times": str(tmp_path / "times.json"), "threads": threads, **about})
    return said, tomllib.loads((tmp_path / "auto.toml").read_text())["table"]


def test_measurements_become_a_table(tmp_path, monkeypatch):
    times = {
        "n1c1h64w64k1r3s3": {"cpu.shift": 1e-4, "cpu.windows": 2.9e-4, "cpu.fft": 4e-4},
        "n1c64h28w28k64r3s3t2p1d2g2": {"cpu.shift": 1.5e-4, "cpu.windows": 1e-4},
        "n1c64h30w30k64r3s3t2p1d2g2": {"cpu.shift": 1.2e-4, "cpu.windows": 1e-4},
    }
    said, (made,) = write(tmp_path, monkeypatch, times)
    assert made.pop("problems")[:2] == [
        {"input": [1, 1, 64, 64], "weight": [1, 1, 3, 3], "us": {"cpu.shift": 100.0, "cpu.windows": 290.0}},
        {
            "input": [1, 64, 28, 28],
            "weight": [64, 32, 3, 3],
            "stride": 2,
            "padding": [1, 1],
            "dilation": 2,
            "groups": 2,
            "us": {"cpu.windows": 100.0, "cpu.shift": 150.0},
        },
    ]
    assert made == {"instruction_set": "avx9", "threads": 1, "machine": "box", "commit": "01234567", "date": "2026-11-21"}
    assert (said["problems"], said["near"]) == (3, 2 / 3)  # the last two pick for one another, and badly for the first
    small = {"cpu.shift": 1e-4}
    _, tables = write(tmp_path, monkeypatch, {"n1c1h9w9k1r3s3": small}, threads=2)
    assert [(each["threads"], len(each["problems"])) for each in tables] == [(1, 3), (2, 1)]
    _, tables = write(tmp_path, monkeypatch, {"n1c1h9w9k1r3s3": small}, instructions="neon")
    assert [(each["instruction_set"], each["threads"]) for each in tables] == [("avx9", 1), ("avx9", 2), ("neon", 1)]
    _, tables = write(tmp_path, monkeypatch, {"n1c1h9w9k1r3s3": small})  # measured again
    assert [len(each["problems"]) for each in tables] == [1, 1, 1]


def test_the_committed_table_can_be_read():
    tables = tomllib.loads(choice.TABLE.read_text(encoding="utf-8"))["table"] if choice.TABLE.is_file() else []
    keys = [(each["instruction_set"], each["threads"]) for each in tables]
    assert len(set(keys)) == len(keys)
    known = set(impls.names("conv2d", device="cpu")) - {"cpu.auto"}
    for one in itertools.chain.from_iterable(each["problems"] for each in tables):
        measured = choice.measured(one)
        assert set(measured.times) <= known
        assert list(measured.times.values()) == sorted(measured.times.values())


# convbench tune, in a project of its own

LABELS = ["n1c1h12w12k1r3s3p1", "n1c16h12w12k16r3s3p1", "n1c16h12w12k16r1s1"]
SETTINGS = """
table = "impls/conv2d/cpu/auto.toml"
sets = ["mnist"]
random = 0
seed = 1
seconds = 0.001
within = 3.0
threads = [1]
contenders = ["cpu.cython_direct", "cpu.cython_packed"]
"""


@pytest.fixture
def project(tmp_path):
    """A project with this suite, something small to tune and no table, everything committed."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "benchmarks" / "tune.toml").write_text(SETTINGS)
    (folder / "benchmarks" / "sets" / "mnist.toml").write_text("".join(f'[[problem]]\nlabel = "{one}"\n' for one in LABELS))
    (folder / "impls" / "conv2d" / "cpu").mkdir(parents=True)
    (folder / "impls" / "kernel.py").write_text("")  # for git; what runs is the installed one
    (folder / "asv.conf.json").write_text('{"version": 1, "project": "other", "repo": "."}')
    (folder / ".gitignore").write_text(".convbench\n__pycache__\n")
    git(folder, "init", "--quiet")
    commit(folder, "first")
    return folder


def tune(folder):
    command = [sys.executable, "-m", "convbench.cli", "tune"]
    return subprocess.Popen(
        command, cwd=folder, env={**os.environ, **settings(folder)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@needs_compiled
def test_tuning_goes_on_where_it_was_stopped_and_writes_the_table(project):
    process = tune(project)
    for text in process.stdout:
        if text.startswith("[1/"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in err) == (1, False)
    assert "the same command goes on from there" in err
    assert not (project / "impls/conv2d/cpu/auto.toml").exists()
    out, err = (process := tune(project)).communicate(timeout=120)
    assert process.returncode == 0, err
    assert re.search(rf"[12] of {len(LABELS)} measurements are to be made", out)
    assert f"impls/conv2d/cpu/auto.toml, 1 thread: {len(LABELS)} problems; picked by the others alone, " in " ".join(
        out.split()
    )
    (made,) = tomllib.loads((project / "impls/conv2d/cpu/auto.toml").read_text())["table"]
    assert made["commit"] == git(project, "rev-parse", "--short=8", "HEAD").strip()
    assert (made["instruction_set"], made["threads"]) == (choice.instruction_set(), 1)
    assert {name for one in made["problems"] for name in one["us"]} <= {"cpu.cython_direct", "cpu.cython_packed"}
    commit(project, "the table")  # which decides none of the times
    out, err = (process := tune(project)).communicate(timeout=120)
    assert (process.returncode, "0 of 3 measurements are to be made" in out) == (0, True), err


@pytest.mark.parametrize(("text", "said"), [(None, "is not there"), ("table = ", "cannot be read")])
def test_a_suite_with_nothing_to_tune(project, text, said):
    path = project / "benchmarks" / "tune.toml"
    path.unlink() if text is None else path.write_text(text)
    _, err = (process := tune(project)).communicate(timeout=120)
    assert process.returncode == 1
    assert err.startswith("Error: ")
    assert "benchmarks/tune.toml" in err
    assert said in err
