"""A missing optional dependency is one sentence that names the extra."""

import sys

import pytest

from convbench import pages
from convbench.asv import machine, publisher
from convbench.common import extras


def test_nothing_is_said_where_nothing_is_missing():
    extras.require("A test", "page", "json", "csv")


@pytest.mark.parametrize(("missing", "said"), [(("jinja2",), "jinja2"), (("jinja2", "plotly"), "jinja2 and plotly")])
def test_all_that_is_missing_is_named(monkeypatch, missing, said):
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(extras.click.ClickException) as error:
        extras.require("A test", "page", "jinja2", "json", "plotly")
    assert error.value.message == f"A test needs {said}: pip install 'convbench[page]'"


def test_asv_publishes_the_other_pages_where_ours_cannot_be_made(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "plotly", None)
    told = []
    monkeypatch.setattr(publisher.log, "error", told.append)
    conf = type("Configuration", (), {"project": "p", "results_dir": str(tmp_path), "html_dir": str(tmp_path)})
    pages.Comparison.publish(conf, None, None, None, {})
    (sentence,) = told
    assert sentence.endswith("The comparison page needs plotly: pip install 'convbench[page]'")
    assert not any(tmp_path.iterdir())


def test_a_run_on_a_gpu_machine_wants_to_know_its_name(monkeypatch, tmp_path):
    """Otherwise its results would be stored under the processor's name."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(machine, "DRIVER", tmp_path / "version")
    machine.require_device_names()
    machine.DRIVER.touch()
    with pytest.raises(extras.click.ClickException, match=r"needs pynvml: pip install 'convbench\[gpu\]'"):
        machine.require_device_names()
