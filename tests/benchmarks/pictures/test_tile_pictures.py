"""Pictures of tiles: the sheet has each tile's own class, and the curves are of both halves and of what was trained."""

import functools
import json

import numpy as np
import pytest
from picture_commands import run_here

from benchmarks.pictures import curves, tile_curves, tile_sheet
from benchmarks.pictures.tile_curves import HALVES, Curve
from benchmarks.workloads import eurosat, tile_training

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")
torch = pytest.importorskip("torch", reason="the network is torch's")
pytest.importorskip("rasterio", reason="the sheet's tiles are read with rasterio")
pytest.importorskip("tifffile", reason="tiles are made with tifffile")


@pytest.fixture(autouse=True, scope="module")
def few(tmp_path_factory):
    """A hundred tiles in place of a thousand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONVBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("CONVBENCH_EUROSAT", raising=False)
        patch.setattr(tile_sheet, "AMONG", 100)
        yield


def test_each_tile_of_the_sheet_has_its_class():
    images, names = tile_sheet.chosen("cpu.rasterio", 3)
    assert images.shape == (25, 64, 64, 3)
    every = {eurosat.content(i)[:, :, 3].tobytes(): eurosat.CLASSES[i % 10] for i in range(100)}
    found = [every[np.rint(image[:, :, 0] * 4000).astype("u2").tobytes()] for image in images if image[:, :, 0].max() < 1]
    assert found == [name for name, image in zip(names, images, strict=True) if image[:, :, 0].max() < 1]
    assert len(found) > 10
    assert names != tile_sheet.chosen("cpu.rasterio", 4)[1]


def test_the_sheet_is_drawn(tmp_path):
    done = run_here("tile_sheet", json.dumps({"path": str(tmp_path / "sheet.png")}))
    assert (done.returncode, done.stdout) == (0, f"the tile sheet is {tmp_path / 'sheet.png'}\n")
    with Image.open(tmp_path / "sheet.png") as picture:
        assert picture.width > 800


@pytest.mark.proof
def test_training_names_tiles_rightly_that_it_has_not_seen():
    functions, _ = curves.loaded(["cpu.rasterio"], 2, "train_tiles")
    *_, (done, batches, (curve,)) = tile_curves.train(functions, 200, 10, 0)
    assert done == batches == 100
    assert curve.batches == list(range(10, 101, 10))
    assert np.all(np.diff(curve.seconds) > 0)
    assert min(curve.accuracies[half][-1] for half in HALVES) > 0.7


def test_each_reader_is_given_every_tile_of_its_half_once_a_pass():
    given = []

    def remember(parameters, exp_avg, exp_avg_sq, statistics, tiles, labels, *settings):
        if settings:  # the first call has none, and is no training
            given.append((tiles, list(labels), *settings[:2]))

    found = list(tile_curves.train({"a": remember, "b": functools.partial(remember)}, 50, 2, 0))
    assert [place[:2] for place in found] == [(3, 6), (6, 6)]
    data = eurosat.labelled(50)
    train, _ = eurosat.split(data.labels)
    for tiles, labels, _, batch in given:
        assert sorted(tiles) == sorted(str(data.tiles[i]) for i in train)
        assert [eurosat.CLASSES[label] in tile for tile, label in zip(tiles, labels, strict=True)] == [True] * 40
        assert batch == 16
    assert [step for *_, step, _ in given] == [1, 1, 4, 4]
    assert given[0][0] != given[2][0]


def test_loss_and_accuracy_are_the_networks():
    state, images = tile_training.fresh(), np.zeros((3, 3, 64, 64), np.float32)
    state[0][-2][:] = 0
    state[0][-1][:] = np.arange(10)
    labels = np.array([9, 9, 0])
    scores = np.arange(10) - np.log(np.exp(np.arange(10)).sum())
    assert np.allclose(tile_curves.judged(state, images, labels), (-scores[labels].mean(), 2 / 3))


def test_both_halves_are_drawn_over_time_and_over_batches(tmp_path):
    found = [
        Curve(name, [1, 2], [0.1 * k, 0.2 * k], {half: [2.0, 1.0] for half in HALVES}, {half: [0.1, 0.5] for half in HALVES})
        for k, name in enumerate("ab", 1)
    ]
    tile_curves.draw(found, "the title", tmp_path / "curves.svg")
    text = (tmp_path / "curves.svg").read_text()
    words = ("the title", "a, train", "a, test", "b, train", "b, test", "loss", "batches")
    assert all(f"<!-- {word} -->" in text for word in words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tile_sheet", '{"name": "cpu.absent"}'], "no tile_sheet: not in this commit"),
        (["tile_curves", '{"tiles": 49}'], "no tile_curves: tiles must be at least 50, not 49"),
        (["tile_curves", '{"passes": 0}'], "no tile_curves: passes must be at least 1, not 0"),
        (["tile_curves", '{"workers": -1}'], "no tile_curves: workers must be at least 0, not -1"),
        (["tile_curves", '{"names": ["cpu.absent"]}'], "no tile_curves: none of the implementations can run here"),
    ],
)
def test_errors_in_a_sentence(arguments, words):
    done = run_here(*arguments)
    assert done.returncode == 1
    assert words in done.stderr
