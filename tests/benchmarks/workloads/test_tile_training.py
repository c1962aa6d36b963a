"""Training on tiles as a task: each reader's pass is right and is timed, a wrong one is found."""

import dataclasses
import functools

import numpy as np
import pytest

import impls
from benchmarks.errors import Skip, WrongAnswer
from benchmarks.harness import cell
from benchmarks.workloads import eurosat, tile_training
from benchmarks.workloads.tile_training import Pass, TrainTiles

torch = pytest.importorskip("torch", reason="the network is torch's")
NAMES = impls.names("train_tiles")
SMALL = Pass(5, 3)


@functools.cache
def load(name):
    try:
        return impls.load(name, "train_tiles")
    except impls.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True, scope="module")
def made(tmp_path_factory):
    pytest.importorskip("tifffile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONVBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("CONVBENCH_EUROSAT", raising=False)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.proof)])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_timed_and_judged_again(name, workers):
    made = TrainTiles("train_tiles", dataclasses.replace(SMALL, workers=workers)).check(load(name), {})
    made.block(1)
    assert made.verify(made.block.output)["worst"] <= 1
    assert made.called > 0


def broken(how):
    """An implementation with a fault: how(right, state, tiles, labels, step, batch, seed, workers, lr)."""
    right = load("cpu.raw_numba")

    def function(*given):
        return how(right, list(given[:4]), *given[4:])

    return dataclasses.replace(right, function=function)


def another_step_size(right, state, *given):
    return right(*state, *given[:-1], 1.01 * given[-1])


def another_order(right, state, tiles, labels, step, batch, seed, *more):
    return right(*state, tiles, labels, step, batch, seed + 1, *more)


def one_tile_twice(right, state, tiles, labels, *more):
    return right(*state, [*tiles[:-1], tiles[0]], np.array([*labels[:-1], labels[0]]), *more)


def the_last_tile_left_out(right, state, tiles, labels, step, batch, *more):
    kept = len(tiles) - (len(tiles) > batch)
    return right(*state, tiles[:kept], labels[:kept], step, batch, *more)


def labels_mixed_up(right, state, tiles, labels, *more):
    return right(*state, tiles, labels[::-1].copy(), *more)


def another_loss(right, state, *given):
    return [1.001 * loss for loss in right(*state, *given)]


def a_loss_is_missing(right, state, *given):
    return right(*state, *given)[:-1]


def a_layer_forgotten(right, state, *given):
    kept = state[0][30].copy()
    losses = right(*state, *given)
    state[0][30][:] = kept
    return losses


def statistics_forgotten(right, state, *given):
    return right(*state[:3], [each.copy() for each in state[3]], *given)


def a_gradient_too_large(right, state, *given):
    losses = right(*state, *given)
    state[1][0] *= 1.02
    return losses


def nan(right, state, *given):
    losses = right(*state, *given)
    state[0][-1][3] = np.nan
    return losses


FAULTS = [
    *(another_order, statistics_forgotten, a_gradient_too_large),
    *(
        pytest.param(fault, marks=pytest.mark.proof)
        for fault in (
            *(another_step_size, one_tile_twice, the_last_tile_left_out, labels_mixed_up, another_loss),
            *(a_loss_is_missing, a_layer_forgotten, nan),
        )
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_wrong_pass_is_found(fault):
    with pytest.raises(WrongAnswer):
        TrainTiles("train_tiles", SMALL).check(broken(fault), {})


@pytest.mark.slow
def test_what_goes_wrong_later_is_found():
    later = []

    def how(right, state, *given):
        return [loss * (1.001 if later else 1) for loss in right(*state, *given)]

    made = TrainTiles("train_tiles", SMALL).check(broken(how), {})
    made.block(1)
    later.append(True)
    with pytest.raises(WrongAnswer, match="with other labels, the loss of a step is"):
        made.verify(made.block.output)


def test_a_problem_is_its_label():
    assert Pass.parse("resnet18-n320b32") == Pass(320, 32)
    assert Pass(320, 32, workers=4).label == "resnet18-n320b32"
    for label in ("n320", "resnet18-n320", "resnet18-n27001b32"):
        with pytest.raises(ValueError, match="one looks like resnet18-n320b32"):
            Pass.parse(label)


def test_the_work_is_that_of_resnet18():
    described = TrainTiles("train_tiles", Pass(320, 32)).describe()
    assert tile_training.PARAMETERS == 11_181_642
    assert described["output"] == [10]
    assert 280e9 < described["flops"] < 300e9
    from torch.utils.flop_counter import FlopCounterMode

    from impls.train_tiles.resnet18 import ResNet18

    with torch.device("meta"), FlopCounterMode(display=False) as counted:
        ResNet18()(torch.zeros(1, 3, eurosat.SIDE, eurosat.SIDE))
    assert described["flops"] == 3 * 320 * counted.get_total_flops()


def test_a_users_own_tiles(tmp_path, monkeypatch):
    eurosat.make(tmp_path, 20, seed=1)
    monkeypatch.setenv("CONVBENCH_EUROSAT", str(tmp_path))
    task = TrainTiles("train_tiles", Pass(3, 2))
    assert task.check(load("cpu.raw_numba"), {}).called > 0
    assert list(task.arrays[1]) == [0, 1, 2]
    with pytest.raises(Skip, match=r"no input: folder .* holds 20 tiles, not 21"):
        cell.prepare("cpu.raw_numba", Pass(21, 2), operation="train_tiles")
