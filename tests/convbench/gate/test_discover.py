"""Parameters of both sides that are one."""

import pytest

from convbench.gate import discover


@pytest.mark.parametrize(
    ("base", "head", "named"),
    [
        ("x", "x", "x"),
        ("x|y", "x (0)|x (1)|y", "x (0)|y"),
        ("x (0)|x (1)", "x", "x|x (1)"),
        ("x (0)|x (1)", "x (0)|x (1)|x (2)", "x (0)|x (1)"),
        ("x", "x (0)", "x"),  # a repr of its own
        ("x (0)", "x (0)|x (1)", "x (0)"),
        ("x|x (0)", "x (0)|x (1)", "x|x (0)"),
        ("x (0)|x (1)", "x|x (0)", "x (0)|x (1)"),
        ("x", "", "x"),
    ],
)
def test_a_parameter_has_the_name_that_the_head_gives_it(base, head, named):
    base, head, named = (list(filter(None, text.split("|"))) for text in (base, head, named))
    assert [discover._named_by_head(value, base, head) for value in base] == named
