"""asv's pages show untrusted text as text, and omit what cannot be shown so."""

import json
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from asv.util import UserError
from dashboards import PAGE

from convbench.asv import project as projects
from convbench.asv import safe_pages


def test_what_cannot_be_shown_safely_is_left_out(hostile):
    assert "asv's pages leave out the benchmark 'listsgroup<img src=x onerror=" in hostile.said
    for setting in ("project_url", "show_commit_url"):
        assert f"asv's pages leave out {setting} of the configuration: 'javascript:window.taken=1;//'" in hostile.said
    index = json.loads((hostile.html / "index.json").read_text())
    assert list(index["benchmarks"]) == ["lists.time_length", "lists.time_sort"]
    assert [index["project_url"], index["show_commit_url"]] == ["#", "#"]
    feed = (hostile.html / "regressions.xml").read_text()
    assert "lists.time_length" in feed
    assert "javascript" not in feed


def test_the_plugin_alone_does_the_same(hostile, tmp_path):
    """As `asv publish` in a project that names it."""
    shutil.copytree(hostile.project.root, tmp_path / "project")
    path = tmp_path / "project" / "asv.conf.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"plugins": [".convbench.pages"]}))
    project = projects.load(path)
    command = [sys.executable, "-m", "asv", "publish", "--no-pull"]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=True)
    assert "asv's pages leave out the benchmark 'listsgroup<img src=x onerror=" in done.stdout
    assert "$('<h1>' + group" not in (project.html / "summarygrid.js").read_text()


NAMES = {
    "module.Class.time_it": True,
    "module.Class.time_größe": True,
    "a name of one's choice": True,
    "package-1.0/time": False,
    "Custom name (fast), 2 + 3 = 5; a:b [c] @d": True,
    "समय.time_it": True,
    '"onmouseover="x': False,
    "a<b": False,
    "a&b": False,
    "a#b": False,
    "a?b": False,
    "a%20b": False,
    "a\\b": False,
    "a\nb": False,
}


@pytest.mark.parametrize("name", NAMES)
def test_which_names_asv_s_pages_take(name):
    assert (not safe_pages.UNSAFE.search(name)) is NAMES[name]


ADDRESSES = {
    "#": True,
    "": True,
    "https://github.com/a/b/commit/": True,
    "HTTP://a.example/?a=b&c=": True,
    "../commit/": True,
    "//a.example/commit/": True,
    "javascript:a": False,
    "JaVaScript:a": False,
    " javascript:a": False,
    "java\nscript:a": False,
    "javascript&colon;a": False,
    "data:text/html,a": False,
    'https://a.example/"onclick="a': False,
    "https://a.example/<b>": False,
    "vbscript:a": False,
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_which_addresses_asv_s_pages_link_to(address):
    assert bool(safe_pages.LINK.fullmatch(address)) is ADDRESSES[address]


def test_scripts_of_another_asv_end_it(tmp_path):
    """It is not known which texts they show as HTML."""
    for path in PAGE.parent.glob("*.js"):
        (tmp_path / path.name).write_text(path.read_text().replace("+ group +", "+ group + group +"))
    conf = SimpleNamespace(html_dir=str(tmp_path), project_url="#", show_commit_url="#")
    with pytest.raises(UserError, match=r"summarygrid.js differs from that of asv 0\.6 "):
        safe_pages.Text.publish(conf, None, {}, None, None)
