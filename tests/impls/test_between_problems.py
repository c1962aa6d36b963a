"""The table of five machines that decided how cpu.auto predicts between measured problems."""

import between_problems
import pytest
from screens import require_same


@pytest.mark.slow
def test_nearest_neighbours_lose_less_than_a_point_against_regression(capsys):
    between_problems.main()
    said = capsys.readouterr().out
    require_same("between_problems.txt", said)
    nearest, regression = (float(share.strip(" %")) for share in said.splitlines()[-1].split("|")[2:4])
    assert nearest > regression - 1
