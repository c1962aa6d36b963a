"""The description of a built environment."""

import json
import platform
import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace

import pytest
from asv.util import ProcessError

from convbench.asv import build_commit


def environment(run=subprocess.check_output, **requirements):
    return SimpleNamespace(
        requirements=requirements, run_executable=lambda _, words: run([sys.executable, *words], text=True)
    )


def test_the_versions_are_those_of_what_is_required_and_pinned():
    commands = ["in-dir={env_dir} python -m pip install --quiet click==8.0 nothing_at_all==1", "pip install {wheel_file}"]
    found = build_commit._versions(environment(numpy="", **{"pip+scipy": "1.0"}), commands)
    named = {name: version(name) for name in ("asv_runner", "click", "numpy", "scipy")}
    assert found == named | {"python": platform.python_version()}


@pytest.mark.parametrize("error", [ProcessError([], 1, "", ""), OSError(), json.JSONDecodeError("", "", 0)])
def test_an_environment_that_cannot_tell_has_none(error):
    def fail(*_, **__):
        raise error

    assert build_commit._versions(environment(fail), []) == {}


@pytest.mark.parametrize(
    ("stdout", "stderr", "said"),
    [
        ("Processing ./.\n", "  error: subprocess-exited-with-error\n\n  no compiler\n  [end of output]\n", "no compiler"),
        ("no compiler\n", "", "no compiler"),
        ("", "no compiler", "no compiler"),
    ],
)
def test_the_last_words_are_those_of_the_error(stdout, stderr, said):
    assert build_commit.last_words(ProcessError(["pip"], 1, stdout, stderr))[-1] == said
