"""The perceptron in NumPy alone: its gradients are torch's, compiled or not, and the rungs differ in what they say."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import impls
from benchmarks.errors import Skip
from benchmarks.harness import cell
from benchmarks.workloads.training import Training
from impls.train_step import perceptron

torch = pytest.importorskip("torch", reason="the gradients are compared with torch's")

RUNGS = ("cpu.numpy", "cpu.cython_untyped", "cpu.cython_typed", "cpu.cython_update", "cpu.cython_fused")
SCRIPTS = ("perceptron", "_cython_perceptron_untyped", "_cython_perceptron")


def script(name):
    return pytest.importorskip(f"impls.train_step.{name}", reason="its compiled part is missing")


@pytest.mark.parametrize("name", SCRIPTS)
def test_loss_and_gradients_are_those_of_torch(name):
    step = script(name).step

    @given(
        st.lists(st.integers(1, 12), min_size=2, max_size=5),
        st.integers(1, 9),
        st.sampled_from([0.0, 1.0, 1e3]),
        st.integers(0, 99),
    )
    @settings(max_examples=50, deadline=None)
    def agrees(sizes, n, scale, seed):
        numbers = np.random.default_rng(seed)
        shapes = [shape for size, below in zip(sizes[1:], sizes, strict=False) for shape in ((size, below), (size,))]
        parameters = [numbers.normal(size=shape) * scale for shape in shapes]
        images, labels = numbers.normal(size=(n, sizes[0])), numbers.integers(0, sizes[-1], n)

        leaves = [torch.from_numpy(each.copy()).requires_grad_() for each in parameters]
        values = torch.from_numpy(images)
        for i in range(0, len(leaves), 2):
            values = torch.nn.functional.linear(values.relu() if i else values, leaves[i], leaves[i + 1])
        expected = torch.nn.functional.cross_entropy(values, torch.from_numpy(labels))
        gradients = torch.autograd.grad(expected, leaves)

        updates = []
        others = [object() for _ in parameters], [object() for _ in parameters]
        loss = step(lambda *given: updates.append(given), parameters, *others, images, labels, 7, 0.5)
        assert type(loss) is float
        assert loss == pytest.approx(expected.item(), rel=1e-9, abs=1e-9)
        assert len(updates) == len(parameters)
        for update, parameter, gradient, *moments in zip(updates, parameters, gradients, *others, strict=True):
            assert update[0] is parameter
            difference = np.linalg.norm(update[1] - gradient.numpy())
            assert difference <= 1e-10 * (1 + np.linalg.norm(gradient.numpy()))
            assert [*update[2:]] == [*moments, 7, 0.5]

    agrees()


def test_one_rung_is_the_script_itself_compiled():
    untyped = script("_cython_perceptron_untyped")
    assert Path(untyped.__file__).suffix != ".py"
    assert untyped.__doc__ == perceptron.__doc__
    assert {name for name in vars(perceptron) if name[0] != "_"} == {name for name in vars(untyped) if name[0] != "_"}


@pytest.mark.parametrize("name", RUNGS)
def test_the_other_network_is_refused_in_words(name):
    try:
        function = impls.load(name, "train_step")
    except impls.Unavailable as error:
        pytest.skip(str(error))
    reason = "network=convolutional: only network=perceptron is supported"
    assert (function.unsupported("perceptron"), function.unsupported("convolutional")) == (None, reason)
    with pytest.raises(Skip, match=f"unsupported: {reason}"):
        cell.require_support(function, cell.task("train_step", Training("convolutional", 1)))
