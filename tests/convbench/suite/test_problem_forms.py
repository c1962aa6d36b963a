"""Arguments become a problem of the operation, or a usage error with an example."""

import re

import click
import pytest

from convbench.suite import problem_forms

ALWAYS = {"threads": 1, "seconds": 0.5}
CONVOLUTION = {"stride": 1, "padding": [0, 0], "dilation": 1, "groups": 1, "dtype": "float32"}
OPTIONS = {**CONVOLUTION, "padding": "0", "fill": 0.0, "batch": 32, "bands": None, "region": None, "size": 128, **ALWAYS}
SHAPES = ("1x3x16x16", "4x3x3x3")


def request(operation, *texts, **options):
    return problem_forms.request(operation, texts, {**OPTIONS, **options}, options)


SHAPED = {"input": [1, 3, 16, 16], "weight": [4, 3, 3, 3], **CONVOLUTION}


@pytest.mark.parametrize("operation", ["conv2d", "conv2d_backward", "conv_transpose2d"])
def test_convolutions(operation):
    asked = {**ALWAYS, **SHAPED, "operation": operation}
    assert request(operation, *SHAPES) == {**asked, "names": []}
    assert request(operation, *SHAPES, "a", "b", stride=2) == {**asked, "names": ["a", "b"], "stride": 2}


@pytest.mark.parametrize(
    "label", ["n1c3h16w16k4r3s3t2p1x0d2g1", "resnet50/n1c64h56w56k64r3s3p1", "filters/box-n1c1h9w9k1r3s3"]
)
def test_labels_of_convolutions(label):
    asked = {**ALWAYS, "problem": label, "dtype": "float64", "operation": "conv2d_backward", "names": ["a"]}
    assert request("conv2d_backward", label, "a", dtype="float64") == asked
    for texts, options, twice in (((), {"stride": 2, "groups": 1}, "--groups, --stride"), (("4x3x3x3",), {}, "4x3x3x3")):
        with pytest.raises(
            click.UsageError, match=f"already has the weight and all settings but --dtype: leave out {twice}$"
        ):
            request("conv2d", label, *texts, **options)


def test_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one_number = {"stride": 1, "dilation": 1, "dtype": "float32"}
    asked = {
        "im2col": (["9x9", "3x3"], {"image": [9, 9], "kernel": [3, 3], "padding": [0], "fill": 0.0, **one_number}),
        "read_batch": (["tiles"], {"folder": f"{tmp_path}/tiles", "batch": 32, "bands": None}),
        "preprocess": (["a b.jpg"], {"picture": f"{tmp_path}/a b.jpg", "region": None, "size": 128}),
        "adam_step": (["1796010"], {"problem": "1796010", "dtype": "float32"}),
        "train_step": (["perceptron-n10"], {"problem": "perceptron-n10"}),
        "unknown": (["what"], {"problem": "what"}),
    }
    for operation, (texts, found) in asked.items():
        assert request(operation, *texts, "mine") == {**ALWAYS, **found, "operation": operation, "names": ["mine"]}


@pytest.mark.parametrize(
    "text",
    [
        "1x3x16",
        "1x3x16x16x1",
        "1,3,16,16",
        "",
        "x",
        "xxx",
        "1x3x16x",
        "1x3x16x-16",
        "1X3X16X16",
        " 1x3x16x16",
        "1x3x16x16\n",
        "1x3x1e3x16",
        "1x3x16x16.0",
        "1x3x16xten",
        f"1x3x16x{'9' * 5000}",
        "1x3x16x\N{ARABIC-INDIC DIGIT ONE}",
    ],
)
@pytest.mark.parametrize("named", ["INPUT", "WEIGHT"])
def test_a_text_that_is_no_shape(text, named):
    with pytest.raises(click.BadParameter, match=r"is not 4 numbers joined by x, as in \d+x") as caught:
        request("conv2d", *((text, SHAPES[1]) if named == "INPUT" else (SHAPES[0], text)))
    assert caught.value.param_hint == named
    assert repr(text) in caught.value.message


@pytest.mark.parametrize(
    ("padding", "expected"), [("same", "same"), ("0", [0, 0]), ("3", [3, 3]), ("1x2", [1, 2]), ("10x0", [10, 0])]
)
def test_padding(padding, expected):
    assert request("conv2d", *SHAPES, padding=padding)["padding"] == expected


@pytest.mark.parametrize("padding", ["valid", "-1", "1x2x3", "1.5", "", "x", "max"])
def test_a_text_that_is_no_padding(padding):
    with pytest.raises(click.BadParameter) as caught:
        request("conv2d", *SHAPES, padding=padding)
    assert caught.value.message.startswith(f"{padding!r} is ")
    assert caught.value.param_hint == "--padding"


def test_settings_of_other_operations():
    assert request("im2col", "5x6x7", "3x3x3", padding="1x0x2", fill=-1.0)["padding"] == [1, 0, 2]
    assert request("read_batch", "tiles", bands="1,12")["bands"] == [1, 12]
    assert request("preprocess", "a.jpg", region="0x10x200x300")["region"] == [0, 10, 200, 300]


MISTAKES = {
    "no argument": (("conv2d",), {}, "Missing argument 'INPUT' of conv2d."),
    "half the arguments": (("im2col", "9x9"), {}, "Missing argument 'KERNEL' of im2col."),
    "no folder": (("read_batch",), {}, "Missing argument 'FOLDER' of read_batch."),
    "an option of another": (
        ("adam_step", "5"),
        {"stride": 2},
        "--stride is not an option of adam_step; its options are --dtype",
    ),
    "an option of none": (
        ("train_step", "5"),
        {"dtype": "float64"},
        "--dtype is not an option of train_step; its options are none",
    ),
    "no groups": (
        ("im2col", "9x9", "3x3"),
        {"groups": 2},
        "--groups is not an option of im2col; its options are --stride, --padding,",
    ),
    "no sizes": (("im2col", "9,9", "3x3"), {}, "'9,9' is not numbers joined by x, as in 16x16x16"),
    "a word for a padding": (("im2col", "9x9", "3x3"), {"padding": "same"}, "'same' is not numbers joined by x"),
    "no bands": (("read_batch", "a"), {"bands": "1x2"}, "'1x2' is not numbers joined by commas, as in 4,3,2"),
    "half a region": (("preprocess", "a"), {"region": "1x2"}, "'1x2' is not 4 numbers joined by x, as in 0x0x120x160"),
    "a region outside": (("preprocess", "a"), {"region": "-1x2x3x4"}, "'-1x2x3x4' is not 4 numbers joined by x"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_no_question(mistake):
    (operation, *texts), options, words = MISTAKES[mistake]
    with pytest.raises(click.UsageError) as caught:
        request(operation, *texts, **options)
    assert re.match(words, caught.value.message)
