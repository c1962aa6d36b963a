"""A pass of training on tiles: the network is ResNet-18, all readers train alike, and bad tiles and calls are named."""

import functools
import json
import multiprocessing
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from damage import damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tile_batches import EUROSAT, RANDOM, write

import impls
from benchmarks.workloads import tile_training
from impls.contract import declaration
from impls.read_batch.arguments import BadTile
from impls.train_tiles import arguments

torch = pytest.importorskip("torch", reason="the network is torch's")
from impls.train_tiles import datasets, resnet18  # noqa: E402

NAMES = impls.names("train_tiles")
each = pytest.mark.parametrize("name", NAMES)
pytestmark = pytest.mark.filterwarnings("ignore:Dataset has no geotransform", "ignore:This DataLoader will create")


@functools.cache
def load(name):
    try:
        return impls.load(name, "train_tiles")
    except impls.Unavailable as reason:
        pytest.skip(str(reason))


@functools.cache
def kept_state():
    return tile_training.fresh()


@pytest.fixture
def state():
    """Arguments of a call that is refused before it changes anything, or whose changes no test reads."""
    return kept_state()


# The network


def test_it_is_resnet18():
    network = resnet18.ResNet18()
    assert sum(parameter.numel() for parameter in network.parameters()) == 11_181_642
    assert tuple(tuple(parameter.shape) for parameter in network.parameters()) == arguments.PARAMETERS
    running = [tuple(each.shape) for name, each in network.named_buffers() if "running" in name]
    assert tuple(running) == arguments.STATISTICS
    names = set(network.state_dict())
    assert {"conv1.weight", "layer1.1.bn2.running_var", "layer2.0.downsample.0.weight", "fc.bias"} <= names
    with torch.no_grad():
        assert network(torch.zeros(2, 3, 64, 64)).shape == (2, 10)


def test_the_network_shares_the_memory_of_its_arrays(state):
    network = resnet18.of(state[0], state[3])
    for parameter, array in zip(network.parameters(), state[0], strict=True):
        assert parameter.data_ptr() == array.ctypes.data
        assert parameter.requires_grad
    assert network.bn1.running_var.data_ptr() == state[3][1].ctypes.data


# A pass


@pytest.mark.parametrize("seed", [0, 7])
def test_every_tile_comes_once_in_another_order(seed, tmp_path):
    tiles = [write(tmp_path / f"{i}.tif", np.full((5, 6, 6), i, "u2")) for i in range(10)]
    labelled = datasets.LabelledTiles("cpu.skimage", tiles, np.arange(10))
    batches = list(datasets.shuffled(labelled, 4, seed, 0))
    assert [len(labels) for _, labels in batches] == [4, 4, 2]
    order = torch.cat([labels for _, labels in batches])
    assert torch.equal(order, torch.randperm(10, generator=torch.Generator().manual_seed(seed)))
    images = torch.cat([images for images, _ in batches])
    assert torch.allclose(images, (order / 4000)[:, None, None, None].expand(10, 3, 6, 6))


TURNED = [np.roll(EUROSAT, i, axis=2)[:, :40, :40] for i in range(5)]
LABELS = np.array([0, 9, 3, 3, 1])


@functools.cache
def plain_loop():
    """Losses, parameters and statistics as a tutorial has them, with torch's own start of Adam."""
    images = torch.from_numpy(np.stack([np.clip(each[[3, 2, 1]] / 4000, 0, 1) for each in TURNED])).float()
    parameters, _, _, statistics = tile_training.fresh()
    network, losses = resnet18.of(parameters, statistics), []
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    order = torch.randperm(5, generator=torch.Generator().manual_seed(2))
    for places in (order[:3], order[3:]):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(images[places]), torch.from_numpy(LABELS)[places])
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses, parameters, statistics


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "cpu.rasterio")) for name in NAMES])
def test_every_reader_trains_as_a_plain_loop_does(name, tmp_path):
    tiles, state = [write(tmp_path / f"{i}.tif", each) for i, each in enumerate(TURNED)], tile_training.fresh()
    losses, parameters, statistics = plain_loop()
    assert np.allclose(load(name)(*state, tiles, LABELS, batch=3, seed=2, lr=0.01), losses, rtol=1e-4)
    for trained, right in ((state[0], parameters), (state[3], statistics)):
        for ours, theirs in zip(trained, right, strict=True):
            assert np.linalg.norm(ours - theirs) <= 0.01 * np.linalg.norm(theirs) + 1e-6


def test_training_goes_on_where_it_stopped(tmp_path):
    """Two passes, the second with the number of its first step, equal one optimiser's."""
    tiles = [write(tmp_path / f"{i}.tif", np.roll(EUROSAT, i, axis=2)[:, :40, :40]) for i in range(2)]
    steps = []
    for step in (1, 1000):
        state = tile_training.fresh()
        load("cpu.skimage")(*state, tiles, np.array([0, 1]), step=step, batch=2)
        steps.append(np.abs(state[0][0] - tile_training.fresh()[0][0]).max())
    # Without moments a first step has the size lr; of the thousandth the corrections are 1 - 0.9**1000 and 1 - 0.999**1000.
    assert np.allclose(steps, [1e-3, 1e-3 * 0.1 / np.sqrt(1e-3 / (1 - 0.999**1000))], rtol=1e-2)


# Bad tiles


def cut(path):
    write(path, EUROSAT)
    path.write_bytes(path.read_bytes()[:50_000])


FAULTS = {
    "missing": (lambda path: None, FileNotFoundError, "tile {} does not exist"),
    "cut in half": (cut, BadTile, "tile {} is damaged, cut short, or not a TIFF"),
    "smaller": (lambda path: write(path, EUROSAT[:, :40, :40]), BadTile, "tile {} has 13 bands of 40x40 uint16, unlike the"),
    "two bands": (lambda path: write(path, EUROSAT[:2]), Exception, None),
    "float32": (
        lambda path: write(path, EUROSAT.astype("f4")),
        BadTile,
        "tile {} has pixels of float32, not uint8 or uint16",
    ),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_tile_is_named_as_read_batch_names_it(fault, workers, tmp_path, state):
    make, kind, text = FAULTS[fault]
    tiles = [write(tmp_path / f"{i}.tif", EUROSAT) for i in range(2)] + [str(tmp_path / "2.tif")]
    make(tmp_path / "2.tif")
    for name in NAMES:
        with pytest.raises(kind) as caught:
            load(name)(*state, tiles, np.arange(3), batch=3, workers=workers)
        with pytest.raises(kind) as known:
            impls.load(name, "read_batch")(tiles)
        assert (type(caught.value), str(caught.value)) == (type(known.value), str(known.value)), name
        assert text is None or text.format(tiles[2]) in str(caught.value)
        assert multiprocessing.active_children() == []


def outcome(function, *arguments):
    """The type and text of a call's error, or the bytes of its array."""
    try:
        return function(*arguments).tobytes()
    except Exception as error:
        return type(error), str(error)


@each
def test_any_damage_gives_pixels_or_the_words_of_read_batch(name, tmp_path):
    load(name)
    tiles = [write(tmp_path / "good.tif", EUROSAT), str(tmp_path / "a.tif")]

    def in_order():
        ((images, labels),) = datasets.batches(datasets.LabelledTiles(name, tiles, np.arange(2)), 2, 0, 0)
        return images[labels.argsort()].numpy()

    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(damaged(st.just(Path(tiles[0]).read_bytes())))
    def agrees(data):
        Path(tiles[1]).write_bytes(data)
        first, second, both = (outcome(impls.load(name, "read_batch"), some) for some in (tiles[:1], tiles[1:], tiles))
        # A Dataset reads tile by tile, and those that are of one height and width may have other bands.
        alike = isinstance(second, bytes) and len(second) == len(first)
        assert outcome(in_order) == (first + second if alike else both)

    agrees()


def test_tiles_of_another_shape_in_another_batch_are_found(tmp_path):
    tiles = [write(tmp_path / f"{i}.tif", EUROSAT[:, : 40 + 8 * i, : 40 + 8 * i]) for i in range(2)]
    with pytest.raises(BadTile, match=r"1\.tif has 13 bands of 48x48 uint16, unlike the first tile, "):
        load("cpu.raw_numba")(*tile_training.fresh(), tiles, np.arange(2), batch=1)


@pytest.mark.parametrize(("count", "batch"), [(3, 2), (2, 1), (1, 32)])
def test_a_batch_without_a_variance_is_refused(count, batch, tmp_path, state):
    tiles = [write(tmp_path / f"{i}.tif", EUROSAT[:, :32, :32]) for i in range(count)]
    with pytest.raises(ValueError, match="a batch of one tile of 32x32 pixels has no variance to normalise by: batch="):
        load("cpu.skimage")(*state, tiles, np.arange(count), batch=batch)


def test_what_does_not_fit_in_memory_is_refused(tmp_path, state, monkeypatch):
    tile = write(tmp_path / "a.tif", RANDOM.integers(0, 9, (5, 512, 512), "u1"), rows=512)
    monkeypatch.setattr(impls.checks, "free_memory", lambda: 10**8)
    with pytest.raises(MemoryError, match=r"^training on a batch of shape \(2, 3, 512, 512\) would take 276,824,064 bytes"):
        load("cpu.skimage")(*state, [tile] * 2, np.arange(2))


# The same mistake gives the same error


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


MISTAKES = [
    ({"parameters": lambda parameters: parameters[:61]}, ValueError, "parameters must hold ResNet-18's 62 arrays, not 61"),
    ({"statistics": [np.zeros(1, "f4")] * 40}, ValueError, r"statistics\[0\] must have shape \(64,\), not \(1,\)"),
    ({"exp_avg": [np.zeros(1)]}, TypeError, r"exp_avg\[0\] must be float32, not float64"),
    ({"exp_avg_sq": [[1.0]]}, TypeError, r"exp_avg_sq\[0\] must be a NumPy array, not list"),
    ({"statistics": [read_only(np.zeros(64, "f4"))]}, ValueError, r"statistics\[0\] is updated in place, .* is read-only"),
    ({"statistics": [np.zeros(128, "f4")[::2]]}, ValueError, r"statistics\[0\] is updated in place, .* is not contiguous"),
    ({"exp_avg": lambda parameters: parameters}, ValueError, r"exp_avg\[\d+\] and parameters\[\d+\] must not share memory"),
    ({"tiles": "a.tif"}, TypeError, "tiles must be a list of paths, not str"),
    ({"tiles": []}, ValueError, "tiles must name at least one file"),
    ({"labels": [3]}, TypeError, "labels must be a NumPy array, not list"),
    ({"labels": np.array([3.0])}, TypeError, "labels must be int64, not float64"),
    ({"labels": np.array([3, 4])}, ValueError, r"labels must have shape \(1,\), one for each tile, not \(2,\)"),
    ({"labels": np.array([10])}, ValueError, "labels must be from 0 to 9, not 10 to 10"),
    ({"step": 0}, ValueError, "step must be a positive integer"),
    ({"batch": 0}, ValueError, "batch must be at least 1, not 0"),
    ({"batch": 1.5}, TypeError, "batch must be an integer, not 1.5"),
    ({"workers": -1}, ValueError, "workers must be at least 0, not -1"),
    ({"seed": 2**63}, ValueError, "seed must be at most 9223372036854775807, not 9223372036854775808"),
    ({"lr": "fast"}, TypeError, "lr must be a number, not 'fast'"),
]


@each
def test_a_mistake_is_named(name, state):
    lists = zip(("parameters", "exp_avg", "exp_avg_sq", "statistics"), state, strict=True)
    good = {**dict(lists), "tiles": ["a.tif"], "labels": np.array([3])}
    for changed, error, words in MISTAKES:
        ((argument, value),) = changed.items()
        value = value(state[0]) if callable(value) else value
        with pytest.raises(error, match=words):
            load(name)(**{**good, argument: value})


# The contract


@each
def test_declarations(name):
    declared, reader = declaration(name, "train_tiles"), declaration(name, "read_batch")
    assert (declared["device"], declared["arrays"]) == ("cpu", "numpy")
    assert (declared["limits"], declared["family"]) == (reader["limits"], reader["family"])
    assert 0 < len(declared["summary"]) < 80
    loaded = load(name)
    assert loaded.unsupported((320, 13, 64, 64), batch=32, workers=4) is None
    with pytest.raises(ValueError, match="batch must be at least 1, not 0"):
        loaded.unsupported((320, 13, 64, 64), batch=0)
    if "skimage" in name:
        assert loaded.unsupported((320, 64, 64, 64)) == "axes=ambiguous: only axes=evident is supported"


@pytest.mark.slow
def test_missing_libraries():
    code = """
import json, sys
sys.modules.update(dict.fromkeys(sys.argv[1].split()))
import impls
said = {}
for name in impls.names("train_tiles"):
    try:
        said[name] = impls.load(name, "train_tiles").name
    except impls.Unavailable as reason:
        said[name] = str(reason)
print(json.dumps(said))
"""
    for hidden, cures in (("torch", {"torch==2.13.0"}), ("rasterio skimage numba", {"rasterio", "scikit-image", "numba"})):
        done = subprocess.run([sys.executable, "-c", code, hidden], capture_output=True, text=True, check=True, timeout=120)
        said = json.loads(done.stdout)
        assert sorted(said) == NAMES
        assert {words.rpartition("; pip install ")[2] for words in said.values()} == cures
