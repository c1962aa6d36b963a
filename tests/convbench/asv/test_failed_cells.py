"""Why a cell failed, as the side file keeps it."""

import json

import pytest
from asv import util

from convbench.asv import failed_cells

OWN = json.dumps({"benchmark": "b.time_it", "params": ["1"], "status": "failed", "reason": "the suite's own words"})


@pytest.mark.parametrize(
    ("status", "printed", "said"),
    [
        (util.TIMEOUT_RETCODE, "", "timed out after 2 s"),
        (0, "", "no value"),
        (1, "For parameters: 1\nTraceback\nValueError: singular\n\nasv: benchmark failed", "ValueError: singular"),
        (-9, "half a line", "its process was killed by SIGKILL"),
        (3, "", "its process ended with status 3"),
    ],
)
def test_the_reason_is_the_causes_own_words(status, printed, said):
    assert failed_cells.reason({"timeout": 2.0}, status, printed) == said


@pytest.mark.parametrize("before", ["", "{}\n", '{"half', "[]\n", f"{OWN}\n{{}}\n"])
def test_a_line_is_added_whatever_stands_before_it(tmp_path, before):
    (file := tmp_path / "cells.jsonl").write_text(before)
    failed_cells._add(file, "b.time_it", ("1",), "why")
    assert file.read_text().startswith(before)
    assert json.loads(file.read_text().splitlines()[-1])["reason"] == "why"


def test_the_suites_own_words_stay(tmp_path):
    (file := tmp_path / "cells.jsonl").write_text(f"{OWN}\n")
    failed_cells._add(file, "b.time_it", ("1",), "why")
    assert file.read_text() == f"{OWN}\n"
