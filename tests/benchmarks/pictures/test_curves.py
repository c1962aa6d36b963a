"""Curves of training: what they are drawn from is right, from one start and several, and the command says what it does."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
from picture_commands import run_here
from scipy import stats

import impls
from benchmarks.pictures import curves
from benchmarks.pictures.curves import Curve
from benchmarks.workloads import digits

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")
pytest.importorskip("sklearn", reason="the digits ship with scikit-learn")


@pytest.mark.proof
def test_training_with_our_convolution_is_training_with_torchs(tmp_path):
    request = {"names": ["cpu.torch", "cpu.auto"], "network": "convolutional", "epochs": 8}
    request["path"] = str(tmp_path / "new" / "curves.png")
    done = run_here("curves", json.dumps(request))
    assert done.returncode == 0, done.stderr
    *_, theirs, ours, last = done.stdout.splitlines()
    assert theirs.startswith("cpu.torch: ")
    assert "1.00 times cpu.torch" in theirs
    accuracies = [float(line.split("%")[0].split()[-1]) for line in (theirs, ours)]
    assert min(accuracies) > 70
    assert abs(accuracies[0] - accuracies[1]) < 3
    assert last == f"the curves are {request['path']}"
    with Image.open(request["path"]) as picture:
        assert picture.width > 1000


def test_every_step_is_counted_and_every_time_belongs_to_its_steps():
    functions, _ = curves.loaded(["cpu.torch_fused", "cpu.torch"], 1)
    *_, (step, steps, found) = curves.train(functions, "perceptron", 125, 1, seeds=2)
    assert step == steps == 24
    assert [(curve.seed, curve.name) for curve in found] == list(itertools.product(range(2), functions))
    for curve in found:
        assert curve.steps == [10, 12]
        assert np.all(np.diff(curve.seconds) > 0)
        assert curve.losses[-1] < curve.losses[0]
    assert np.allclose(found[0].losses, found[1].losses, rtol=1e-3)
    assert np.allclose(found[2].losses, found[3].losses, rtol=1e-3)
    assert not np.allclose(found[0].losses, found[2].losses, rtol=1e-3)


def test_the_text_is_trained_and_tested_on_images_as_it_is_shown_them(monkeypatch):
    given, tested = [], []

    def step(network, parameters, exp_avg, exp_avg_sq, images, labels, number, lr):
        given.append((network, images, number))
        return 1.0

    function = dataclasses.replace(impls.load("cpu.torch", "train_step"), function=step)
    monkeypatch.setattr(curves, "accuracy", lambda network, parameters, data: tested.append(data.test_images) or 0.5)
    *_, (_, _, (curve,)) = curves.train({"cpu.mine": function}, "text", 1500, 2)
    data = digits.load()
    assert {network for network, *_ in given} == {"text"}
    assert np.allclose(np.sort(given[1][1], axis=None), np.sort(digits.normalised(data.images), axis=None))
    assert np.array_equal(tested[0], digits.normalised(data.test_images))
    assert curve.accuracies == [0.5]


def some_curves(accuracies):
    """Curves by name, one for each accuracy after the last step."""
    return [
        Curve(name, seed, [10, 20, 30], [0.1 * k, 0.2 * k, 0.3 * k], [2.0, 1.0, 0.5], [0.1, 0.5, last])
        for k, (name, own) in enumerate(accuracies.items(), 1)
        for seed, last in enumerate(own)
    ]


def test_curves_are_drawn_over_time_and_over_steps(tmp_path):
    curves.draw(some_curves({"a": [0.9], "b": [0.8]}), "the title", tmp_path / "curves.svg")
    text = (tmp_path / "curves.svg").read_text()
    assert text.count("<!-- the title -->") == 1
    assert all(f"<!-- {word} -->" in text for word in ("a", "b", "loss", "steps"))
    assert "FillBetween" not in text


def test_curves_from_several_starts_have_bands_and_an_interval(tmp_path):
    found = some_curves({"a": [0.9, 0.91, 0.92], "b": [0.91, 0.92, 0.96]})
    curves.draw(found, "the title", tmp_path / "curves.svg")
    text = (tmp_path / "curves.svg").read_text()
    assert text.count('id="FillBetweenPolyCollection') == 8
    expected = stats.ttest_rel([0.91, 0.92, 0.96], [0.9, 0.91, 0.92]).confidence_interval(0.95)
    own = curves.by_name(found)
    assert curves.difference(own["b"], own["a"]) == pytest.approx((expected.low, expected.high))
    assert "<!-- b (accuracy -2.3 to +6.3 points) -->" in text
    said = curves.in_words(found)
    assert said["a"] == "0.3 s, 1.00 times a; loss 0.5, 91.0% of the test images named rightly (90.0% to 92.0% by start)"
    assert said["b"].endswith("-2.30 to +6.30 points from a (95% interval of 3 starts), which may be chance")
    said = curves.in_words(some_curves({"a": [0.9, 0.91, 0.92], "b": [0.95, 0.96, 0.971]}))
    assert said["b"].endswith("which is more than chance")
    assert curves.difference(own["a"][:1], own["b"][:1]) is None


@pytest.mark.parametrize(("folder", "expected"), [(None, (100, 20)), ("/mnist", (1000, 5))])
def test_the_text_is_trained_as_many_steps_on_either_digits(folder, expected, monkeypatch):
    monkeypatch.setenv("CONVBENCH_MNIST", folder) if folder else monkeypatch.delenv("CONVBENCH_MNIST", raising=False)
    batch, epochs = digits.schedule().values()
    assert (batch, epochs) == expected
    assert epochs * ((60_000 if folder else 1500) // batch) == 300
