"""The gallery: the photograph through the filters by every implementation, with a reason where there is no picture."""

import json

import numpy as np
import pytest
from picture_commands import run, run_here

import impls
from benchmarks.errors import Skip
from benchmarks.pictures import gallery
from benchmarks.workloads import inputs

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")


@pytest.fixture(scope="module")
def drawn():
    return {
        row.name: row.pictures for row in gallery.rows(["cpu.shift", "cpu.torch", "im2col.strided", "cpu.numba_winograd"])
    }


@pytest.mark.slow
def test_every_implementation_draws_the_same_pictures(drawn):
    for pictures in drawn.values():
        assert tuple(pictures) == gallery.SHOWN
        for shown, picture in pictures.items():
            assert picture.shape == (107, 160, 3)
            assert np.abs(picture - drawn["cpu.shift"][shown]).max() < 1e-4


def test_the_pictures_are_what_the_filters_are_for(drawn):
    photo = np.load(inputs.cache_folder() / "photo.npy")[:, ::4, ::4].transpose(1, 2, 0) / 2 + 0.5
    pictures = drawn["cpu.torch"]
    assert np.abs(pictures["identity"] - photo).max() < 1e-6
    assert pictures["edges"][1:-1, 1:-1].mean() == pytest.approx(0.5, abs=0.02)  # the Laplacian of a plain sky is nothing
    assert pictures["box"][1:-1, 1:-1].std() < photo.std() < pictures["sharpen"][1:-1, 1:-1].std()
    assert pictures["emboss"].std() > photo.std()


def test_a_wrong_or_missing_one_has_words_and_no_picture(monkeypatch, tmp_path):
    right = impls.load("cpu.shift")

    def wrong(input, weight, **settings):
        assert settings == {"padding": "same", "groups": 3}
        output = right(input, weight, **settings)
        output[0, 1, 0, 5] += 0.5
        return output

    def load(name, operation):
        if name == "cpu.absent":
            raise Skip("unavailable: it needs a GPU")
        function = {"cpu.wrong": wrong}.get(name, right)
        return impls.contract.Implementation(
            name, "conv2d", function, right.unchecked, "cpu", "direct", "", "numpy", {"stride": 1}
        )

    monkeypatch.setattr(gallery.cell, "load", load)
    monkeypatch.setattr(gallery.cell, "implementations", lambda: ["cpu.right", "cpu.wrong", "cpu.absent"])
    rows = list(gallery.rows(["cpu.right", "cpu.wrong", "cpu.absent"]))
    assert {type(picture) for picture in rows[0].pictures.values()} == {np.ndarray}
    assert all("worst at n=0, k=1, p=0, q=5" in reason for reason in rows[1].pictures.values())
    assert set(rows[2].pictures.values()) == {"unavailable: it needs a GPU"}
    for path in (tmp_path / "all.png", tmp_path / "all.svg"):
        gallery.draw(rows, path)
        assert path.stat().st_size > 10_000
    text = (tmp_path / "all.svg").read_text()
    assert text.count("<image") == len(gallery.SHOWN)
    with pytest.raises(LookupError, match="none of the implementations"):
        gallery.draw(rows[2:], tmp_path / "none.png")


@pytest.mark.slow
def test_the_command_says_what_it_draws_and_where(tmp_path):
    path = tmp_path / "folder" / "gallery.png"
    done = run("gallery", json.dumps({"names": ["cpu.shift", "cpu.scipy_convolve2d"], "path": str(path)}))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["cpu.shift: drawn", "cpu.scipy_convolve2d: drawn", f"the gallery is {path}"]
    with Image.open(path) as picture:
        assert picture.width > 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gallery", json.dumps({"names": ["cpu.shift"], "path": "/proc/no/gallery.png"})], "no gallery: "),
        (
            ["gallery", json.dumps({"names": ["cpu.shfit"]})],
            "no gallery: no implementation of conv2d is called 'cpu.shfit'; did you",
        ),
        (["gallery", json.dumps({"names": "cpu.shift"})], "no gallery: names is a list, not 'cpu.shift'"),
        (["gallery", json.dumps({"name": ["cpu.shift"]})], "no gallery: a request has names and path, not name"),
        (["gallery", "cpu.shift"], "the request is not JSON"),
        (["gallery", "[]"], "the request is not a JSON object"),
        (
            ["galery"],
            "no verb is called 'galery'; there are try, speed, problems",
        ),
        ([], "there are try, speed, problems, remember, tables, profile, doctor, implementations"),
    ],
)
def test_errors_in_a_sentence(arguments, words):
    done = run_here(*arguments)
    assert done.returncode == 1
    assert words in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gallery", json.dumps({"names": "cpu.shift"})], "no gallery: names is a list, not 'cpu.shift'"),
        (["galery"], "no verb is called 'galery'"),
    ],
)
def test_an_error_ends_the_process_without_a_traceback(arguments, words):
    done = run(*arguments)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
