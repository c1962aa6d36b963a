"""One step of training: every implementation agrees with the definition, and a wrong one has no time; our layer trains."""

import dataclasses
import functools
import gzip
import itertools
import struct
import sys

import numpy as np
import pytest
from cases import case
from hypothesis import given, settings
from hypothesis import strategies as st

import impls
from benchmarks.errors import Missing, Skip, WrongAnswer
from benchmarks.harness import cell
from benchmarks.workloads import digits, training
from benchmarks.workloads.training import Training, TrainStep

torch = pytest.importorskip("torch", reason="the networks are torch's")
pytest.importorskip("sklearn", reason="the digits ship with scikit-learn")

NAMES = impls.names("train_step", "cpu")
NETWORKS = tuple(training.SHAPES)
each = pytest.mark.parametrize("name", NAMES)


@functools.cache
def load(name):
    try:
        return impls.load(name, "train_step")
    except impls.Unavailable as error:
        pytest.skip(str(error))


def task(network="convolutional", n=7):
    return TrainStep("train_step", Training(network, n))


# Right steps


# Numba compiles the convolutions of a network for a quarter of a minute.
STEPS = [
    pytest.param(name, network, marks=[pytest.mark.proof] * (name == "cpu.numba_direct" and network != "perceptron"))
    for name in NAMES
    for network in NETWORKS
    if impls.checks.outside(impls.contract.declaration(name, "train_step")["limits"], {"network": network}) is None
]


@pytest.mark.parametrize(("name", "network"), STEPS)
def test_a_step_is_the_definition(name, network):
    for n in (1, 3, 100):
        with case(n):
            made = task(network, n).check(load(name), {})
            made.block(2)
            assert made.verify(made.block.output)["worst"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "network"), STEPS)
def test_ten_steps_are_those_of_torch(name, network):
    """Against torch.optim.Adam and autograd on the same leaves: loss by loss, and the parameters after the last."""
    from impls.train_step import networks

    images, labels = digits.batch(20)
    state = training.fresh(network)
    leaves = [torch.from_numpy(each.astype(np.float64)).requires_grad_() for each in state[0]]
    optimiser = torch.optim.Adam(leaves, lr=0.01)
    losses = []
    for step in range(1, 11):
        optimiser.zero_grad()
        images64 = torch.from_numpy(images.astype(np.float64))
        loss = networks.loss(network, leaves, images64, torch.from_numpy(labels), step, torch.conv2d)
        loss.backward()
        optimiser.step()
        losses.append((float(loss.detach()), load(name)(network, *state, images, labels, step, 0.01)))
    assert np.allclose(*np.transpose(losses), rtol=1e-3)
    assert losses[-1][1] < losses[0][1]
    for ours, leaf, before in zip(state[0], leaves, training.fresh(network)[0], strict=True):
        theirs = leaf.detach().numpy()
        # A few may go elsewhere: Adam takes a step of the same size whatever is left of a gradient near zero.
        assert np.linalg.norm(ours - theirs) < 0.01 * np.linalg.norm(theirs - before)


def test_another_step_drops_out_others():
    images, labels = digits.batch(20)
    first, again, second = (
        load("cpu.torch")("convolutional", *training.fresh("convolutional"), images, labels, step) for step in (1, 1, 2)
    )
    assert first == again != second


# The layer

SETTINGS = st.fixed_dictionaries(
    {
        "stride": st.sampled_from([1, 2, (1, 2)]),
        "padding": st.sampled_from([0, 1, (0, 2)]),
        "dilation": st.sampled_from([1, (2, 1)]),
        "groups": st.sampled_from([1, 2]),
    }
)
PAIRS = [
    *(("cpu.auto", "cpu.cython_direct"), ("cpu.shift_matmul", "cpu.shift")),
    pytest.param(("cpu.numba_direct", "cpu.numba_direct"), marks=pytest.mark.proof),
]


@pytest.mark.parametrize("pair", PAIRS)
def test_the_function_has_the_gradients_that_differences_say(pair):
    from impls.train_step.layers import convolution

    @given(SETTINGS, st.integers(1, 2), st.booleans(), st.integers(0, 99))
    @settings(max_examples=10, deadline=None)
    def agrees(settings, n, biased, seed):
        numbers = torch.Generator().manual_seed(seed)
        shapes = (n, 2, 6, 5), (4, 2 // settings["groups"], 3, 2), (4,)
        given = [torch.randn(shape, generator=numbers, dtype=torch.float64).requires_grad_() for shape in shapes]
        arguments = given if biased else [*given[:2], None]
        function = convolution(*pair)
        assert torch.autograd.gradcheck(lambda *tensors: function(*tensors, **settings), arguments)
        assert torch.allclose(function(*arguments, **settings), torch.conv2d(*arguments, **settings))

    agrees()


@pytest.mark.parametrize("padding", [1, "same"])
def test_the_layer_takes_the_place_of_torchs(padding):
    from impls.train_step.layers import Conv2d

    torch.manual_seed(0)
    theirs = torch.nn.Conv2d(3, 6, 3, padding=padding, groups=3)
    torch.manual_seed(0)
    ours = Conv2d(3, 6, 3, padding=padding, groups=3, forward_by="cpu.shift", backward_by="cpu.shift")
    images = torch.randn(2, 3, 9, 9)
    assert torch.allclose(ours(images), theirs(images), atol=1e-5)
    ours.load_state_dict(theirs.state_dict())
    for layer in (ours, theirs):
        layer(images).square().sum().backward()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"forward_by": "cpu.shfit"}, LookupError, "did you mean"),
        ({"backward_by": "cpu.absent"}, LookupError, "no implementation of conv2d_backward"),
        ({"padding_mode": "reflect", "padding": 1}, ValueError, "padding_mode must be zeros, not reflect"),
    ],
)
def test_a_layer_that_there_is_not(arguments, error, words):
    from impls.train_step.layers import Conv2d

    with pytest.raises(error, match=words):
        Conv2d(1, 1, 3, **arguments)


# Mistakes

GOOD = {
    "network": "convolutional",
    **dict(zip(("parameters", "exp_avg", "exp_avg_sq"), training.fresh("convolutional"), strict=True)),
    "images": np.zeros((2, 1, 28, 28), np.float32),
    "labels": np.array([3, 9]),
    "step": 1,
}


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


@each
@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"network": "transformer"}, LookupError, "no network is called 'transformer'; there are perceptron, convolutional"),
        ({"parameters": GOOD["parameters"][:-1]}, ValueError, r"parameters of the convolutional network must have shapes"),
        (
            {"exp_avg": [each.astype("f8") for each in GOOD["exp_avg"]]},
            TypeError,
            r"exp_avg\[0\] must be float32, not float64",
        ),
        ({"exp_avg_sq": [[1.0]] * 12}, TypeError, r"exp_avg_sq\[0\] must be a NumPy array, not list"),
        (
            {"images": GOOD["images"].astype("f8")},
            TypeError,
            "images must be float32 and labels int64, not float64 and int64",
        ),
        ({"images": GOOD["images"][:0], "labels": GOOD["labels"][:0]}, ValueError, "hold at least one, not"),
        ({"images": GOOD["images"][..., :27]}, ValueError, r"shape \(N, 1, 28, 28\)"),
        ({"labels": GOOD["labels"][:1]}, ValueError, r"labels must have shape \(2,\), one for each image, not \(1,\)"),
        ({"labels": np.array([3, 10])}, ValueError, "labels must be from 0 to 9, not 3 to 10"),
        ({"step": 0}, ValueError, "step must be a positive integer"),
        (
            {"parameters": [*GOOD["parameters"][:-1], read_only(GOOD["parameters"][-1])]},
            ValueError,
            r"parameters\[11\] is updated in place, and this array is read-only",
        ),
        (
            {"exp_avg": [*GOOD["exp_avg"][:-2], np.zeros((50, 10), "f4").T, GOOD["exp_avg"][-1]]},
            ValueError,
            r"exp_avg\[10\] is updated in place, and this array is not contiguous",
        ),
        ({"exp_avg": GOOD["parameters"]}, ValueError, r"exp_avg\[\d+\] and parameters\[\d+\] must not share memory"),
        ({"lr": "fast"}, TypeError, "lr must be a number, not 'fast'"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_changed(name, changed, error, words):
    before = [each.copy() for each in GOOD["parameters"]]
    with pytest.raises(error, match=words):
        load(name)(**{**GOOD, **changed})
    assert all(map(np.array_equal, before, GOOD["parameters"]))


# The judge


def broken(how, name="cpu.torch_fused"):
    """An implementation with a fault: how(right, network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)."""
    return dataclasses.replace(load(name), function=functools.partial(how, load(name)))


def another_step_size(right, *given):
    return right(*given[:-1], 1.01 * given[-1])


def the_step_after(right, *given):
    return right(*given[:-2], given[-2] + 1, given[-1])


def one_image_less(right, network, parameters, exp_avg, exp_avg_sq, images, labels, *more):
    return right(network, parameters, exp_avg, exp_avg_sq, images[1:], labels[1:], *more)


def another_loss(right, *given):
    return 1.001 * right(*given)


def a_layer_forgotten(right, network, parameters, *given):
    kept = parameters[2].copy()
    loss = right(network, parameters, *given)
    parameters[2][:] = kept
    return loss


def a_gradient_too_large(right, network, parameters, exp_avg, *given):
    loss = right(network, parameters, exp_avg, *given)
    exp_avg[0] *= 1.01
    return loss


def not_in_place(right, network, parameters, exp_avg, exp_avg_sq, *given):
    return right(network, *([each.copy() for each in arrays] for arrays in (parameters, exp_avg, exp_avg_sq)), *given)


def nan(right, network, parameters, *given):
    loss = right(network, parameters, *given)
    parameters[-1][3] = np.nan
    return loss


FAULTS = [
    *(another_step_size, the_step_after, one_image_less, another_loss, a_layer_forgotten, a_gradient_too_large),
    *(not_in_place, nan),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("network", NETWORKS)
def test_a_wrong_step_is_found(fault, network):
    with pytest.raises(WrongAnswer):
        task(network).check(broken(fault), {})


def test_what_goes_wrong_later_is_found():
    calls = itertools.count(1)

    def later(right, network, parameters, *given):
        loss = right(network, parameters, *given)
        return loss * (1.001 if next(calls) > 3 else 1)

    made = task().check(broken(later), {})
    made.block(3)
    with pytest.raises(WrongAnswer, match="with other labels, the loss is"):
        made.verify(made.block.output)


# The problem, and the digits


def test_a_problem_is_its_label():
    assert Training.parse("perceptron-n100") == Training("perceptron", 100)
    assert Training("convolutional", 1000).label == "convolutional-n1000"
    with pytest.raises(ValueError, match="one looks like convolutional-n1000"):
        Training.parse("n1000")


@pytest.mark.parametrize("network", NETWORKS)
def test_the_work_is_counted_from_the_shapes(network):
    products, parameters = training.WORK[network]
    shapes = training.SHAPES[network]
    assert parameters == sum(int(np.prod(shape)) for shape in shapes)
    if network == "perceptron":
        assert products == sum(int(np.prod(shape)) for shape in shapes if len(shape) == 2)
    side, found = 28, 0
    for i, (k, c, r, s) in enumerate(shape for shape in shapes if len(shape) == 4):
        side -= r - 1
        found += k * c * r * s * side**2
        side //= 1 + i % 2
    if network != "perceptron":
        assert products == found + sum(int(np.prod(shape)) for shape in shapes if len(shape) == 2)


def idx(array):
    return struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def mnist(tmp_path, monkeypatch):
    """A folder of MNIST's files, small and random, two of them compressed; digits.load reads it."""
    numbers = np.random.default_rng(0)
    for i, (part, name) in enumerate(digits.FILES.items()):
        shape = (5, 28, 28) if "images" in part else (5,)
        content = idx(numbers.integers(0, 256 if "images" in part else 10, shape).astype(np.uint8))
        (tmp_path / (f"{name}.gz" if i % 2 else name)).write_bytes(gzip.compress(content) if i % 2 else content)
    monkeypatch.setenv("CONVBENCH_MNIST", str(tmp_path))
    digits.load.cache_clear()
    yield tmp_path
    digits.load.cache_clear()


def test_mnist_is_read_where_there_is_a_folder_of_it(mnist):
    found = digits.load()
    assert found.name == "MNIST"
    assert found.images.shape == found.test_images.shape == (5, 1, 28, 28)
    assert (found.images.dtype, found.labels.dtype) == ("float32", "int64")
    assert 0 <= found.images.min() < 0.1 < 0.9 < found.images.max() <= 1
    images, labels = digits.batch(12)
    assert np.array_equal(images[:2], images[10:])
    assert np.array_equal(labels[:2], labels[10:])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda path: path.unlink(), "holds no train-images-idx3-ubyte, compressed or not"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "is not a complete IDX file"),
        (lambda path: path.write_bytes(b""), "is not a complete IDX file"),
        (lambda path: path.write_bytes(b"\0\0\x0d" + path.read_bytes()[3:]), "its numbers are not bytes"),
        (lambda path: path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes())[:40]), "is not a complete"),
        (lambda path: path.with_suffix(".gz").write_bytes(gzip.compress(b"")[:12] + b"\xff" * 9), "is not a complete"),
        (lambda path: path.write_bytes(idx(np.zeros((5, 28, 27), np.uint8))), r"hold \(5, 28, 27\) and \(5,\) numbers"),
        (
            lambda path: [
                (path.parent / name).write_bytes(idx(np.zeros((0, 28, 28) if "images" in part else 0, np.uint8)))
                for part, name in digits.FILES.items()
                if not part.startswith("test")
            ],
            r"hold \(0, 28, 28\) and \(0,\) numbers",
        ),
        (lambda path: path.write_bytes(idx(np.zeros((4, 28, 28), np.uint8))), r"hold \(4, 28, 28\) and \(5,\) numbers"),
    ],
)
def test_a_folder_without_mnist_is_named(mnist, change, words):
    change(path := mnist / digits.FILES["images"])
    if path.with_suffix(".gz").exists():
        path.unlink()
    with pytest.raises(Missing, match=words):
        digits.load()
    with pytest.raises(Skip, match="no input: .*" + words):
        cell.prepare("cpu.torch", Training("perceptron", 2), operation="train_step")


def test_without_a_folder_the_small_digits_are_as_large_as_mnists():
    found = digits.load()
    assert found.images.shape == (1500, 1, 28, 28)
    assert found.test_images.shape == (297, 1, 28, 28)
    assert np.array_equal(np.unique(found.labels), np.arange(10))
    assert found.images.max() == 1
    assert not found.images[:, :, :2].any()


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    digits.load.cache_clear()
    with pytest.raises(Missing, match="pip install scikit-learn"):
        digits.load()
    digits.load.cache_clear()
