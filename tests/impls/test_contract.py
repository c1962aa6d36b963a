"""The contract: how implementations are listed, declared and loaded, and what is said where something is missing."""

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from packages import EINSUM, PACKAGE, python

import impls
from impls.contract import declaration, implementation, wrap

pytestmark = pytest.mark.first
ROOT = Path(__file__).parents[2]

NAMES = impls.names("conv2d")
X, W = np.arange(50, dtype="float32").reshape(1, 2, 5, 5), np.arange(36, dtype="float32").reshape(2, 2, 3, 3)


# Listing


def test_names_are_the_files():
    files = {f"{path.parent.name}.{path.stem}" for path in (PACKAGE / "conv2d").glob("*/*.py") if path.stem[0] != "_"}
    assert sorted(files) == NAMES == impls.names()
    assert {
        *("cpu.cython_direct", "cpu.loops", "cpu.numba_direct", "cpu.scipy_convolve2d", "cpu.shift", "cpu.torch"),
        *("cpu.windows", "gpu.cupy_direct", "gpu.torch", "im2col.naive", "im2col.strided", "im2col.torch_unfold"),
    } <= files


def test_names_by_device():
    cpu, cuda = impls.names(device="cpu"), impls.names("conv2d", "cuda")
    assert sorted(cpu + cuda) == NAMES
    assert "im2col.naive" in cpu
    assert {"gpu.cupy_direct", "gpu.torch"} <= set(cuda)
    assert not any(name.startswith("gpu.") for name in cpu)


@pytest.mark.parametrize("look", [impls.names, lambda operation: impls.load("cpu.loops", operation)])
@pytest.mark.parametrize(("operation", "hint"), [("conv2", "did you mean conv2d"), ("zzz", "there are adam_step, conv2d")])
def test_unknown_operation(look, operation, hint):
    with pytest.raises(LookupError, match=f"no operation is called '{operation}'; {hint}"):
        look(operation)


# Loading


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("cpu.numba_dirct", "cpu.numba_direct"),
        ("numba_direct", "cpu.numba_direct"),
        ("gpu.loops", "cpu.loops"),
        ("im2col.stride", "im2col.strided"),
        ("loops", "cpu.loops"),
        ("CPU.loops", "cpu.loops"),
        ("zzzzzz", "there are cpu.auto, cpu.cython_direct, cpu.cython_packed"),
        ("", "cpu.loops"),
        ("cpu.__init__", "cpu."),
        ("cpu._cython_direct", "cpu.cython_direct"),
        ("arguments", "cpu."),
        ("cpu/loops", "cpu.loops"),
    ],
)
def test_unknown_name(name, near):
    with pytest.raises(LookupError) as caught:
        impls.load(name)
    assert f"no implementation of conv2d is called {name!r}" in str(caught.value)
    assert near in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_declaration_is_what_is_loaded(name):
    declared = declaration(name)
    assert set(declared) == {"device", "family", "summary", "arrays", "limits"}
    assert declared["device"] in {"cpu", "cuda"}
    assert (declared["device"] == "cpu") == (declared["arrays"] == "numpy")
    assert declared["summary"].count("\n") == 0 < len(declared["summary"]) < 80
    try:
        loaded = impls.load(name)
    except impls.Unavailable as reason:
        pytest.skip(str(reason))
    assert (loaded.name, loaded.operation) == (name, "conv2d")
    assert {key: getattr(loaded, key) for key in declared} == declared


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PACKAGE.glob("*/*/*.py")) if path.stem[0] != "_"],
    ids=lambda path: "/".join(path.parts[-3:]),
)
def test_every_file_says_its_idea_cost_and_source(path):
    text = ast.get_docstring(ast.parse(path.read_text()))
    idea, _, rest = text.partition("\n\n")
    assert idea.rstrip().endswith(".")
    assert re.search(r"FLOPs|operations|bytes", rest)
    assert "extra memory" in rest
    # A paper, a page, a book, or the file whose idea it carries on.
    assert re.search(r"arXiv|https://|\b(19|20)\d\d\b|course page|a post|(cpu|im2col|gpu)\.[a-z]", rest)


@pytest.mark.parametrize(
    ("name", "family", "arrays"), [("gpu.cupy_direct", "direct", "cupy"), ("gpu.torch", "cudnn", "torch")]
)
def test_gpu_declarations_need_no_gpu(name, family, arrays):
    declared = declaration(name)
    assert (declared["device"], declared["family"], declared["arrays"], declared["limits"]) == (
        *("cuda", family, arrays),
        {},
    )


def test_on_the_cpu_arrays_stay_where_they_are():
    loaded = impls.load("cpu.shift")
    assert loaded.to_device(X) is X
    assert loaded.to_numpy(X) is X
    assert loaded.synchronize() is None


LOAD = """
import impls
said = {}
for name in NAMES or impls.names():
    try:
        said[name] = impls.load(name).name
    except impls.Unavailable as reason:
        said[name] = "Unavailable: " + str(reason)
print(json.dumps(said))
"""


def test_missing_libraries():
    hidden = "sys.modules.update(dict.fromkeys(['cupy', 'numba', 'scipy', 'torch']))"
    said = python(f"{hidden}; NAMES = []{LOAD}", PACKAGE.parent)
    needs = {
        "cpu.numba_direct": "numba",
        "cpu.scipy_convolve2d": "scipy",
        "cpu.torch": "torch",
        "gpu.cupy_direct": "cupy",
        "gpu.torch": "torch",
        "im2col.torch_unfold": "torch",
    }
    for name, library in needs.items():
        assert said[name].startswith(f"Unavailable: {name} "), said[name]
        assert f"pip install {library}" in said[name]
    for name in ("cpu.loops", "cpu.shift", "cpu.windows", "im2col.naive", "im2col.strided"):
        assert said[name] == name  # NumPy alone


@pytest.mark.parametrize("how", ["not built", "not importable"])
def test_missing_compiled_part(copy, how):
    hide = "sys.modules['impls.conv2d.cpu._cython_direct'] = None" if how == "not importable" else ""
    said = python(f"{hide}; NAMES = ['cpu.cython_direct', 'cpu.loops']{LOAD}".lstrip("; "), copy.parent)
    assert said["cpu.cython_direct"].startswith("Unavailable: cpu.cython_direct ")
    assert "pip install ." in said["cpu.cython_direct"]
    assert "compiler" in said["cpu.cython_direct"]
    assert said["cpu.loops"] == "cpu.loops"


def test_importing_and_listing_need_numpy_alone():
    new = python(
        """
        before = set(sys.modules)
        import impls, impls.contract
        impls.names(), impls.names(device="cuda"), [impls.contract.declaration(name) for name in impls.names()]
        impls.load("cpu.windows"), impls.load("im2col.naive")
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(json.dumps(sorted(new - sys.stdlib_module_names)))
        """,
        PACKAGE.parent,
    )
    assert set(new) == {"impls", "numpy"}


# Limits


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("cpu.scipy_convolve2d", {}, None),
        ("cpu.scipy_convolve2d", {"stride": (1, 1), "dilation": [1, 1], "padding": "same"}, None),
        ("cpu.scipy_convolve2d", {"stride": 2}, "stride=(2, 2): only stride=1 is supported"),
        ("cpu.scipy_convolve2d", {"stride": (1, 2)}, "stride=(1, 2): only stride=1 is supported"),
        ("cpu.scipy_convolve2d", {"dilation": 2}, "dilation=(2, 2): only dilation=1 is supported"),
        ("cpu.scipy_convolve2d", {"dilation": [2, 1]}, "dilation=(2, 1): only dilation=1 is supported"),
        ("cpu.shift", {"stride": 3, "dilation": 2, "padding": 1}, None),
    ],
)
def test_unsupported(name, settings, reason):
    try:
        loaded = impls.load(name)
    except impls.Unavailable as missing:
        pytest.skip(str(missing))
    for dtype in ("float32", "float64", np.dtype("float32")):
        assert loaded.unsupported(X.shape, W.shape, dtype=dtype, **settings) == reason
    if reason is None:
        loaded(X, W, **settings)
        return
    with pytest.raises(NotImplementedError) as caught:
        loaded(X, W, **settings)
    assert str(caught.value) == reason


def test_unsupported_refuses_what_no_implementation_supports():
    loaded = impls.load("cpu.loops")
    with pytest.raises(TypeError, match="dtype must be float32 or float64 in native byte order, not float16"):
        loaded.unsupported(X.shape, W.shape, dtype="float16")
    with pytest.raises(ValueError, match="groups must be a positive integer"):
        loaded.unsupported(X.shape, W.shape, groups=0)


@pytest.mark.parametrize(
    ("limits", "problem", "reason"),
    [
        ({"groups": 1}, {"groups": 2}, "groups=2: only groups=1 is supported"),
        ({"dtype": "float32"}, {"dtype": "float64"}, "dtype=float64: only dtype=float32 is supported"),
        ({"dtype": "float32"}, {"dtype": np.float64}, "dtype=float64: only dtype=float32 is supported"),
        ({"dtype": "float32"}, {"dtype": W.dtype}, None),
        ({"stride": 2}, {"stride": 1}, "stride=(1, 1): only stride=2 is supported"),
        ({"stride": {1, 2}}, {"stride": 3}, "stride=(3, 3): only stride=1 or 2 is supported"),
        ({"stride": {1, 2}}, {"stride": (1, 2)}, None),
        ({"dilation/stride": {1, 2}}, {"stride": (1, 2), "dilation": 2, "padding": 1}, None),
        ({"dilation/stride": 1}, {"stride": 2}, "dilation/stride=(0.5, 0.5): only dilation/stride=1 is supported"),
        ({"groups": 1, "dtype": "float32"}, {}, None),
    ],
)
def test_limits_of_any_argument(limits, problem, reason):
    @implementation(device="cpu", family="direct", summary="only some", limits=limits)
    def conv2d(*arguments):
        return arguments

    weight = (2, 1, 3, 3) if problem.get("groups") == 2 else W.shape
    assert wrap("mine.some", conv2d).unsupported(X.shape, weight, **problem) == reason


@pytest.mark.parametrize(
    ("operation", "shapes"),
    [
        ("adam_step", [(5,)]),
        ("conv2d", [X.shape, W.shape]),
        ("conv2d_backward", [(1, 2, 3, 3), X.shape, W.shape]),
        ("conv_transpose2d", [X.shape, W.shape]),
        ("im2col", [(5, 5), 3]),
        ("preprocess", [(9, 9), (3, 3)]),
        ("read_batch", [(1, 4, 9, 9)]),
        ("train_step", ["perceptron"]),
    ],
)
def test_a_dtype_has_one_meaning_however_it_is_given(operation, shapes):
    def function(*arguments):
        return arguments

    function.__name__ = operation
    loaded = wrap("mine.own", implementation(device="cpu", family="f", summary="s")(function))
    for dtype in ("float32", np.float32, np.dtype("float32"), X.dtype):
        assert loaded.unsupported(*shapes, dtype=dtype) is None
    for dtype in ("float16", np.float16, np.dtype("float16")):
        with pytest.raises(TypeError, match=r"^dtype must be float32.*, not float16"):
            loaded.unsupported(*shapes, dtype=dtype)


# Functions from elsewhere


def test_wrap_takes_a_decorated_function():
    @implementation(device="cpu", family="windows", summary="what it was given")
    def conv2d(*arguments):
        """Return the input."""
        return arguments

    mine = wrap("mine.echo", conv2d)
    assert (mine.name, mine.operation, mine.device, mine.family) == ("mine.echo", "conv2d", "cpu", "windows")
    assert (mine.summary, mine.arrays, mine.limits) == ("what it was given", "numpy", {})
    assert mine.function.__doc__ == mine.unchecked.__doc__ == "Return the input."
    assert mine.unchecked(1, "two") == (1, "two")  # as it is called, without a check
    # The arguments arrive checked and in one form.
    image, weight, bias, *settings = mine(X, W, padding="same", stride=[1, 1])
    assert (image is X, weight is W, bias) == (True, True, None)
    assert settings == [(1, 1), ((1, 1), (1, 1)), (1, 1), 1]
    assert mine(X, W, None, 2, (1, 0), (1, 2))[3:] == ((2, 2), ((1, 1), (0, 0)), (1, 2), 1)
    with pytest.raises(ValueError, match="stride must be at least 1, not 0"):
        mine(X, W, stride=0)


@pytest.mark.parametrize(
    "function", [lambda input, weight: None, len, impls.load("cpu.shift")], ids=["own", "builtin", "wrapped"]
)
def test_wrap_refuses_an_undecorated_one(function):
    with pytest.raises(TypeError, match=r"mine\.own.*lacks the decorator"):
        wrap("mine.own", function)


# Adding files


def test_a_new_file_is_an_implementation(copy):
    assert EINSUM.count("\n") < 30
    (copy / "conv2d/cpu/einsum.py").write_text(EINSUM)
    found = python(
        """
        import impls, impls.contract
        import numpy as np
        x, w = np.arange(100.0).reshape(1, 2, 5, 10), np.arange(36.0).reshape(2, 2, 3, 3)
        loaded = impls.load("cpu.einsum")
        settings = {"stride": 2, "padding": "valid", "bias": np.ones(2)}
        same = np.array_equal(loaded(x, w, **settings), impls.load("cpu.shift")(x, w, **settings))
        declared = impls.contract.declaration("cpu.einsum")
        print(json.dumps([impls.__file__, impls.names(device="cpu"), loaded.summary, declared, same]))
        """,
        copy.parent,
    )
    file, names, summary, declared, same = found
    assert Path(file).parent == copy
    assert names == sorted([*impls.names(device="cpu"), "cpu.einsum"])
    assert summary == declared["summary"] == "NumPy: sliding windows and einsum"
    assert declared["limits"] == {"groups": 1}
    assert same


def test_a_new_folder_is_an_operation(copy):
    (copy / "scale/cpu").mkdir(parents=True)
    (copy / "scale/arguments.py").write_text(
        "from impls.checks import together\n\n\n"
        "def checker(arrays, limits, unchecked=together):\n    return lambda value, by=2: unchecked(value, by)\n"
    )
    (copy / "scale/cpu/plain.py").write_text(
        "from impls.contract import implementation\n\n\n"
        '@implementation(device="cpu", family="direct", summary="one product")\n'
        "def scale(value, by):\n    return value * by\n"
    )
    found = python(
        """
        import impls
        print(json.dumps([impls.names("scale"), impls.load("cpu.plain", "scale")(21), impls.names("conv2d")]))
        """,
        copy.parent,
    )
    assert found == [["cpu.plain"], 42, NAMES]


def test_a_file_without_declaration_is_refused(copy):
    (copy / "conv2d/cpu/bare.py").write_text("def conv2d(input, weight):\n    return input\n")
    said = python(
        """
        import impls, impls.contract
        said = []
        for read in (impls.contract.declaration, impls.load):
            try:
                read("cpu.bare")
            except (LookupError, TypeError) as error:
                said.append([type(error).__name__, str(error)])
        print(json.dumps(said))
        """,
        copy.parent,
    )
    assert [kind for kind, _ in said] == ["LookupError", "TypeError"]
    assert all("cpu.bare" in text and "@" in text for _, text in said)


@pytest.mark.proof
def test_a_wheel_from_a_used_checkout_holds_no_caches(tmp_path):
    """And is portable on request: the option reaches the compiler; or has nothing compiled, as where GPUs are timed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    options = ["-Csetup-args=-Dportable=true", "-Csetup-args=-Dbuildtype=plain"]  # plain: the compiled code is never called
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    used = tmp_path / "used"
    for line in subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0"):
        if line and not line.startswith(("results/", "tests/")) and (ROOT / line).is_file():
            (used / line).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / line, used / line)
    for folder in ("impls", "impls/conv2d/cpu"):
        (used / folder / "__pycache__").mkdir()
        (used / folder / "__pycache__" / "old.pyc").touch()
    builder = (used / "meson.build").read_text().splitlines()  # one kernel is as good as all, and built sooner
    few = [line for line in builder if "'_cython" not in line or re.search("_cython_(typed|shared|levels)", line)]
    (used / "meson.build").write_text("\n".join(few))

    def made(folder, *options):
        build = [*command, *options, "--wheel-dir", str(tmp_path / folder), str(used)]
        done = subprocess.run(build, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        (wheel,) = (tmp_path / folder).glob("convbench_impls-*.whl")
        return zipfile.ZipFile(wheel).namelist()

    bare, held = made("bare", "-Csetup-args=-Dkernels=false"), made("whole", *options)
    assert not [name for name in bare if name.endswith(".so")]
    assert {name for name in held if not name.endswith(".so")} == {*bare}
    assert {"impls/conv2d/cpu/loops.py", "impls/conv2d/im2col/naive.py"} < set(held)
    assert not [name for name in held if name.startswith("convbench/")]
    assert not [name for name in held if "__pycache__" in name]
    assert [name for name in held if name.startswith("impls/conv2d/cpu/_cython_typed.") and name.endswith(".so")]
