"""Readable figures: the right unit, no digit too many, never an exponent."""

import math
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convbench.common import numbers as figures

SCALES = {unit: {name: scale for scale, name in known} for unit, known in figures.UNITS.items()}
STEP = {"seconds": 1000, "bytes": 1024}


@pytest.mark.parametrize(
    ("spread", "count"),
    [
        (None, 3),
        (math.nan, 3),
        (0, 4),
        (-0.01, 4),
        (1e-12, 4),
        (1e-4, 4),
        (0.0002, 4),
        (0.0009, 4),
        (0.001, 3),
        (0.005, 3),
        (0.0099, 3),
        (0.01, 2),
        (0.05, 2),
        (0.099, 2),
        (0.1, 1),
        (0.3, 1),
        (0.99, 1),
        (1, 1),
        (25, 1),
    ],
)
def test_digits(spread, count):
    assert figures.digits(spread) == count


@pytest.mark.parametrize(
    ("value", "count", "text"),
    [
        (0, 3, "0"),
        (1, 1, "1"),
        (1, 3, "1.00"),
        (1.234, 1, "1"),
        (1.234, 2, "1.2"),
        (1.236, 3, "1.24"),
        (12.34, 3, "12.3"),
        (123.4, 3, "123"),
        (1234, 3, "1230"),
        (1234, 1, "1000"),
        (1250000, 2, "1200000"),
        (0.01234, 3, "0.0123"),
        (0.00001234, 2, "0.000012"),
        (-12.34, 3, "-12.3"),
        # Rounding up to the next power of ten adds no digit.
        (9.996, 3, "10.0"),
        (9.96, 2, "10"),
        (9.6, 1, "10"),
        (99.96, 3, "100"),
        (0.996, 2, "1.0"),
        (0.96, 1, "1"),
        (0.09996, 3, "0.100"),
        (-9.96, 2, "-10"),
        (999.96, 4, "1000"),
        (math.inf, 3, "inf"),
        (math.nan, 3, "nan"),
    ],
)
def test_significant(value, count, text):
    assert figures.significant(value, count) == text


@pytest.mark.parametrize(
    ("value", "unit", "spread", "text"),
    [
        (0, "seconds", None, "0 ns"),
        (0, "bytes", None, "0 B"),
        (0, "widgets", None, "0 widgets"),
        (3.3e-7, "seconds", None, "330 ns"),
        (3.3e-7, "seconds", 0.05, "330 ns"),
        (1e-9, "seconds", None, "1.00 ns"),
        (4e-12, "seconds", None, "0.00400 ns"),
        (1e-6, "seconds", None, "1.00 us"),
        (1e-3, "seconds", None, "1.00 ms"),
        (1, "seconds", None, "1.00 s"),
        (0.0123456, "seconds", 0.0001, "12.35 ms"),
        (0.0123456, "seconds", 0.001, "12.3 ms"),
        (0.0123456, "seconds", 0.02, "12 ms"),
        (0.0123456, "seconds", 0.5, "10 ms"),
        (0.0123456, "seconds", 0, "12.35 ms"),
        (0.0123456, "seconds", math.nan, "12.3 ms"),
        (999.4e-6, "seconds", None, "999 us"),
        (999.6e-6, "seconds", None, "1.00 ms"),
        (999.6e-6, "seconds", 0.05, "1.0 ms"),
        (999.6e-6, "seconds", 0.3, "1 ms"),
        (960e-9, "seconds", 0.3, "1 us"),
        (0.9996, "seconds", None, "1.00 s"),
        (7200, "seconds", None, "7200 s"),
        (1, "bytes", None, "1.00 B"),
        (1000, "bytes", None, "1000 B"),
        (1024, "bytes", None, "1.00 KiB"),
        (1024, "bytes", 0.3, "1 KiB"),
        (1040, "bytes", None, "1.02 KiB"),
        (1536, "bytes", 0.02, "1.5 KiB"),
        (2**20, "bytes", None, "1.00 MiB"),
        (2**20 - 1, "bytes", None, "1020 KiB"),
        (2**20 + 1, "bytes", 0.05, "1.0 MiB"),
        (395 * 2**20, "bytes", None, "395 MiB"),
        (2**30, "bytes", None, "1.00 GiB"),
        (2000 * 2**30, "bytes", None, "2000 GiB"),
        (1234.5, "widgets", None, "1230 widgets"),
        (1234.5, "widgets", 0, "1234 widgets"),
        (0.5, "unit", 0.02, "0.50 unit"),
        (-5, "widgets", None, "-5.00 widgets"),
    ],
)
def test_quantity(value, unit, spread, text):
    assert figures.quantity(value, unit, spread) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0.0 %"),
        (1e-9, "<0.1 %"),
        (0.0009, "<0.1 %"),
        (0.001, "0.1 %"),
        (0.005, "0.5 %"),
        (0.05, "5.0 %"),
        (0.0994, "9.9 %"),
        (0.0996, "10 %"),
        (0.1, "10 %"),
        (0.456, "46 %"),
        (1, "100 %"),
        (1.5, "150 %"),
        (12, "1200 %"),
    ],
)
def test_percent(share, text):
    assert figures.percent(share) == text


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (1, None, "1.0x"),
        (1.26, None, "1.3x"),
        (1.26, 0.02, "1.3x"),
        (1.26, 0.3, "1x"),
        (0.97, None, "0.97x"),
        (0.00013, None, "0.00013x"),
        (12.6, None, "13x"),
        (126, None, "130x"),
        (12600, 0.3, "10000x"),
        (0.996, None, "1.0x"),
        (9.96, None, "10x"),
        (9.96, 0.3, "10x"),
    ],
)
def test_ratio(value, spread, text):
    assert figures.ratio(value, spread) == text


spreads = st.none() | st.floats(1e-9, 20)
numbers = st.floats(1e-12, 1e12)
seconds = st.floats(1e-14, 1e6)
sizes = st.integers(1, 2**45)


def claimed(figure: str) -> int:
    """The digits a figure shows, from the first that is not zero; zeros that only hold a place do not count."""
    bare = figure.lstrip("-").replace(".", "").lstrip("0")
    return len(bare if "." in figure else bare.rstrip("0"))


def half_a_place(value, count: int) -> Decimal:
    """How far rounding to `count` digits may move a value."""
    exponent = Decimal(value).copy_abs().adjusted()
    return Decimal(10) ** (exponent + 1 - count) / 2 * Decimal("1.000001")


@given(st.floats(1e-12, 100))
def test_digits_never_exceed_what_the_spread_supports(spread):
    count = figures.digits(spread)
    assert 1 <= count <= figures.MOST_DIGITS
    # One more digit would be finer than the spread of any value.
    assert count == 1 or 10.0 ** (1 - count) > spread


@given(st.floats(1e-12, 100), st.floats(1e-12, 100))
def test_a_larger_spread_never_gives_more_digits(one, other):
    assert figures.digits(max(one, other)) <= figures.digits(min(one, other))


@given(numbers, st.integers(1, 4))
def test_significant_rounds_and_claims_no_more(value, count):
    text = figures.significant(value, count)
    assert claimed(text) <= count
    assert abs(Decimal(text) - Decimal(value)) <= half_a_place(value, count)
    assert figures.significant(-value, count) == f"-{text}"


@given(st.floats(-1e300, 1e300), st.integers(1, 4))
def test_significant_has_no_exponent(value, count):
    assert re.fullmatch(r"-?\d+(\.\d+)?", figures.significant(value, count))


@pytest.mark.parametrize("unit", ["seconds", "bytes"])
@given(data=st.data(), spread=spreads)
def test_quantity_has_a_fitting_unit_and_no_digit_too_many(unit, data, spread):
    value = data.draw(seconds if unit == "seconds" else sizes)
    figure, name = figures.quantity(value, unit, spread).split(" ")
    units = list(SCALES[unit])
    assert re.fullmatch(r"\d+(\.\d+)?", figure)
    # 1023.6 KiB to four digits is 0.9996 MiB: there is no round figure just below a power of two.
    assert float(figure) >= (1 if unit == "seconds" else 0.9995) or name == units[0]
    assert float(figure) < STEP[unit] or name == units[-1]
    count = figures.digits(spread)
    assert claimed(figure) <= count
    scale = Decimal(SCALES[unit][name])
    assert abs(Decimal(figure) - Decimal(value) / scale) <= half_a_place(Decimal(value) / scale, count)


@given(st.floats(min_value=1e-12, max_value=1e12), st.text("abc", min_size=1), spreads)
def test_an_unknown_unit_is_not_scaled(value, unit, spread):
    assert figures.quantity(value, unit, spread) == f"{figures.significant(value, figures.digits(spread))} {unit}"


@given(seconds, seconds, spreads)
def test_the_larger_of_two_times_never_reads_smaller(one, other, spread):
    def read(value):
        figure, name = figures.quantity(value, "seconds", spread).split(" ")
        return float(figure) * SCALES["seconds"][name]

    assert read(min(one, other)) <= read(max(one, other)) * (1 + 1e-9)


@given(st.floats(0, 1e4))
def test_percent_reads_back(share):
    text = figures.percent(share)
    figure = text.removesuffix(" %")
    assert figure != text
    if figure.startswith("<"):
        assert 0 < 100 * share < 0.1
    else:
        assert re.fullmatch(r"\d+(\.\d)?", figure)
        assert ("." in figure) == (float(figure) < 10)
        assert abs(float(figure) - 100 * share) <= (0.0501 if "." in figure else 0.501)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "1 s"), (44.6, "45 s"), (61, "1 min 0 s"), (377, "6 min 20 s"), (3500, "58 min 20 s"), (7700, "2 h 10 min")],
)
def test_durations(seconds, said):
    assert figures.duration(seconds) == said


@given(numbers, spreads)
def test_ratio_has_two_digits_at_most(value, spread):
    text = figures.ratio(value, spread)
    assert re.fullmatch(r"\d+(\.\d+)?x", text)
    assert claimed(text.removesuffix("x")) <= min(2, figures.digits(spread))
