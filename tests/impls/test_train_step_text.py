"""The text's network: dropout and input are checked; its layer on any device; the network on a stand-in for a device."""

import dataclasses
import itertools

import numpy as np
import pytest
from cases import case
from gpu_stand_ins import torch_on_the_cpu
from hypothesis import given, settings
from hypothesis import strategies as st

import impls
from benchmarks.errors import Skip, WrongAnswer
from benchmarks.harness import cell
from benchmarks.workloads import digits, training
from benchmarks.workloads.training import Training, TrainStep

torch = pytest.importorskip("torch", reason="the networks are torch's")
pytest.importorskip("sklearn", reason="the digits ship with scikit-learn")

GPU = impls.names("train_step", "cuda")


def task(network="text", n=20):
    return TrainStep("train_step", Training(network, n))


# What drops out


def test_the_network_drops_out_what_the_reference_does():
    from impls.train_step import networks

    kept = networks._kept("text", 50, training.STEP, "cpu")
    for ours, theirs, width in zip(kept, training.kept("text", 50), (96, 30), strict=True):
        assert ours.shape == (50, width)
        assert torch.equal(ours, theirs > 0)
        assert torch.all(theirs[ours] == 1 / 0.8)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 200))
def test_a_fifth_drops_out_and_anothers_step_others(step, n):
    from impls.train_step import networks

    left, after = (torch.cat(networks._kept("text", n, each, "cpu"), dim=1).double() for each in (step, step + 1))
    places = left.numel()
    spread = 5 * (0.8 * 0.2 / places) ** 0.5  # five standard deviations
    for share in (left, after):
        assert abs(float(share.mean()) - 0.8) < spread
    assert abs(float((left * after).mean()) - 0.64) < 2 * spread
    if n > 1:
        assert abs(float((left[1:] * left[:-1]).mean()) - 0.64) < 2 * spread * (n / (n - 1)) ** 0.5


def dropped(which):
    """The network with one of its two dropouts forgotten."""
    from impls.train_step import networks

    right = networks._kept

    def kept(*given):
        found = list(right(*given))
        found[which] = None
        return tuple(found)

    return kept


@pytest.mark.parametrize("which", [0, 1])
def test_a_dropout_that_is_forgotten_is_found(which, monkeypatch):
    from impls.train_step import networks

    monkeypatch.setattr(networks, "_kept", dropped(which))
    with pytest.raises(WrongAnswer, match="the loss is"):
        task().check(impls.load("cpu.torch", "train_step"), {})


def test_nothing_drops_out_of_a_prediction():
    from impls.train_step import networks

    parameters = [torch.from_numpy(each) for each in training.fresh("text")[0]]
    images = torch.from_numpy(digits.batch(5)[0])
    assert torch.equal(*(networks.predict("text", parameters, images) for _ in range(2)))


# What it is shown


def test_the_text_is_shown_images_by_mnists_mean_and_deviation():
    images, _ = task("text").arrays
    plain, _ = task("convolutional").arrays
    assert images.dtype == np.float32
    assert np.allclose(0.1307 + 0.3081 * images, plain, atol=1e-6)


def test_the_parameters_are_the_texts():
    assert [tuple(each.shape) for each in training.fresh("text")[0][-4:]] == [(30, 96), (30,), (10, 30), (10,)]
    one, again, other = (training.fresh("text", seed)[0] for seed in (1, 1, 2))
    assert all(map(np.array_equal, one, again))
    assert not any(map(np.array_equal, one, other))


def test_a_commit_from_before_the_network_skips_it():
    def unsupported(network):
        raise LookupError(f"no network is called {network!r}")

    function = dataclasses.make_dataclass("Old", ["unsupported"])(unsupported)
    with pytest.raises(Skip, match="unsupported: no network is called 'text'"):
        cell.require_support(function, task())


# The layer on any device

SETTINGS = st.fixed_dictionaries(
    {
        "stride": st.sampled_from([1, 2, (1, 2)]),
        "padding": st.sampled_from([0, 1, (0, 2), "valid"]),
        "dilation": st.sampled_from([1, (2, 1)]),
        "groups": st.sampled_from([1, 2]),
    }
)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(SETTINGS, st.integers(0, 2), st.booleans(), st.integers(0, 99))
def test_the_product_of_each_tap_has_the_gradients_that_differences_say(settings, n, biased, seed):
    from impls.train_step.layers import shift_matmul

    numbers = torch.Generator().manual_seed(seed)
    shapes = (n, 2, 6, 5), (4, 2 // settings["groups"], 3, 2), (4,)
    given = [torch.randn(shape, generator=numbers, dtype=torch.float64).requires_grad_() for shape in shapes]
    arguments = given if biased else [*given[:2], None]
    assert torch.allclose(shift_matmul(*arguments, **settings), torch.conv2d(*arguments, **settings))
    if n:
        assert torch.autograd.gradcheck(lambda *tensors: shift_matmul(*tensors, **settings), arguments)


def layers(padding, device="cpu"):
    from impls.train_step.layers import ShiftMatmul2d

    theirs = torch.nn.Conv2d(4, 6, 3, padding=padding, groups=2, device=device)
    ours = ShiftMatmul2d(4, 6, 3, padding=padding, groups=2, device=device)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


@pytest.mark.parametrize("device", ["cpu", "meta", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("padding", [1, "same"])
def test_the_layer_takes_the_place_of_torchs_on_any_device(padding, device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device here")
    images = torch.randn(2, 4, 9, 9, device=device)
    if device == "meta":  # has shapes alone: whatever asked for a value or another device would fail
        ours, theirs = layers(padding, device)
        assert ours(images).shape == theirs(images).shape
        return
    ours, theirs = layers(padding, device)
    for layer in (ours, theirs):
        layer(images).square().sum().backward()
    assert torch.allclose(ours(images), theirs(images), atol=1e-5)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, rtol=1e-4, atol=1e-3)


def test_the_layers_mistakes_are_named():
    from impls.train_step.layers import ShiftMatmul2d, shift_matmul

    with pytest.raises(ValueError, match="padding_mode must be zeros, not circular"):
        ShiftMatmul2d(1, 1, 3, padding=1, padding_mode="circular")
    with pytest.raises(ValueError, match="do not fit groups=1"):
        ShiftMatmul2d(2, 1, 3)(torch.zeros(1, 1, 5, 5))
    with pytest.raises(ValueError, match=r"bias must have shape \(4,\)"):
        shift_matmul(torch.zeros(1, 2, 5, 5), torch.zeros(4, 2, 3, 3), torch.zeros(1))


# On a device, and on its stand-in


class Cuda(torch.Tensor):
    """A tensor on the CPU that says it is on a CUDA device."""

    __module__ = "torch"
    is_cuda = True


@pytest.fixture(scope="module")
def on_the_cpu():
    """impls.load as if there were a device, whose tensors are on the CPU."""
    with torch_on_the_cpu():
        loaded = {name: impls.load(name, "train_step") for name in GPU}

    class OnTheCpu(type(next(iter(loaded.values())))):
        def to_device(self, array):
            return torch.from_numpy(np.array(array, order="C")).as_subclass(Cuda)

        def to_numpy(self, array):
            return array.numpy().view(np.ndarray)

        def synchronize(self):
            pass

    return {
        name: OnTheCpu(**{each.name: getattr(found, each.name) for each in dataclasses.fields(found) if each.init})
        for name, found in loaded.items()
    }


@pytest.fixture(params=["stand-in", pytest.param("device", marks=pytest.mark.gpu)])
def load(request, on_the_cpu):
    def find(name):
        if request.param == "stand-in":
            return on_the_cpu[name]
        try:
            return impls.load(name, "train_step")
        except impls.Unavailable as error:
            pytest.skip(str(error))

    return find


def test_the_names():
    assert GPU == ["gpu.torch", "gpu.torch_shift_matmul"]


@pytest.mark.parametrize("name", GPU)
def test_a_step_is_the_definition(name, load):
    function = load(name)
    for network, n in itertools.product(training.SHAPES, (1, 20)):
        with case(network, n):
            wanted = task(network, n)
            state, call = wanted._start(function, wanted.arrays[1])
            assert wanted._judge(call(), training.host(function, state), wanted.arrays[1])["worst"] <= 1


@pytest.mark.parametrize("name", GPU)
def test_ten_steps_are_those_of_the_cpu(name, load):
    function, right = load(name), impls.load(name.replace("gpu", "cpu"), "train_step")
    images, labels = task("text").arrays
    ours, theirs = training.placed(function, training.fresh("text")), training.fresh("text")
    given = [function.to_device(array) for array in (images, labels)]
    for step in range(1, 11):
        assert function("text", *ours, *given, step) == pytest.approx(right("text", *theirs, images, labels, step), rel=1e-3)
    for one, other in zip(training.host(function, ours)[0], theirs[0], strict=True):
        assert np.allclose(one, other, atol=1e-3)


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"labels": np.array([3, 10])}, ValueError, "labels must be from 0 to 9, not 3 to 10"),
        ({"labels": np.array([3, 9], np.int32)}, TypeError, "labels int64, not float32 and int32"),
        ({"images": np.zeros((2, 1, 28, 27), np.float32)}, ValueError, r"shape \(N, 1, 28, 28\) .* not \(2, 1, 28, 27\)"),
        ({"parameters": training.fresh("perceptron")[0]}, ValueError, "parameters of the text network must have shapes"),
        ({"exp_avg": [each.astype("f8") for each in training.fresh("text")[1]]}, TypeError, "must be float32, not float64"),
        ({"step": 0}, ValueError, "step must be a positive integer"),
    ],
)
@pytest.mark.parametrize("name", GPU)
def test_a_mistake_is_named_as_on_the_cpu(name, changed, error, words, load):
    good = dict(zip(("parameters", "exp_avg", "exp_avg_sq"), training.fresh("text"), strict=True))
    good |= {"images": np.zeros((2, 1, 28, 28), np.float32), "labels": np.array([3, 9])}
    for function in (load(name), impls.load("cpu.torch", "train_step")):
        given = {
            key: list(map(function.to_device, value)) if isinstance(value, list) else function.to_device(value)
            for key, value in {**good, **{key: value for key, value in changed.items() if key != "step"}}.items()
        }
        with pytest.raises(error, match=words):
            function("text", **given, step=changed.get("step", 1))


@pytest.mark.parametrize("name", GPU)
def test_what_is_not_on_the_device_or_not_whole_is_named(name, load):
    function, state = load(name), training.fresh("text")
    images, labels = (function.to_device(array) for array in task("text", 2).arrays)
    with pytest.raises(TypeError, match=r"parameters\[0\] must be a torch tensor on a CUDA device, not ndarray"):
        function("text", *state, images, labels, 1)
    parameters, exp_avg, exp_avg_sq = training.placed(function, state)
    turned = [*exp_avg[:-2], function.to_device(np.zeros((30, 10), "f4")).T, exp_avg[-1]]
    with pytest.raises(ValueError, match=r"exp_avg\[10\] is updated in place, and this array is not contiguous"):
        function("text", parameters, turned, exp_avg_sq, images, labels, 1)
    with pytest.raises(ValueError, match="must not share memory"):
        function("text", parameters, parameters, exp_avg_sq, images, labels, 1)


@pytest.mark.parametrize("name", GPU)
def test_products_and_convolutions_are_in_float32_for_the_call_alone(name, load, monkeypatch):
    from impls.train_step import networks

    function, within, right = load(name), [], networks.loss

    def spy(*given):
        within.append((torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.conv.fp32_precision))
        return right(*given)

    monkeypatch.setattr(networks, "loss", spy)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        function("text", *training.placed(function, training.fresh("text")), *map(function.to_device, task().arrays), 1)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
    assert within == [(False, "ieee")]
