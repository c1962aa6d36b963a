"""Projects published once for all tests of a session, and a browser that looks at them."""

import contextlib
import io
import os
import shutil
import subprocess
from types import SimpleNamespace

import pytest
from dashboards import STAND_INS, Visit, hostile_project, offline_pages, packed, program, project_with_results
from published import BENCHMARKS, LINES, QUARTILES, SWEEP, TIMES, Published

from convbench.asv import project as projects
from convbench.pages import asv_dashboard, vendor


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own for every test, where dashboards keep packages."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "convbench" / "npm"


# asv's dashboard


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    """A project as asv publishes it. Do not change it."""
    sample = project_with_results(tmp_path_factory.mktemp("original") / "project")
    asv_dashboard.publish(projects.load(sample.folder / "asv.conf.json"))
    return sample.folder


@pytest.fixture
def project(original, tmp_path):
    """A copy of the published project, which a test may change."""
    folder = tmp_path / "project"
    shutil.copytree(original, folder)
    return projects.load(folder / "asv.conf.json")


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A PATH with git alone; writing an npm there is left to the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").symlink_to(shutil.which("git"))
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture(scope="session")
def stand_ins():
    """The packages of an index of our own."""
    return {name: packed(files) for name, files in STAND_INS.items()}


# The last argument is a package with its version.
NPM = """#!/bin/sh
for name; do :; done
echo "$name" >> {log}
{copy} {packages}/"${{name%@*}}-${{name##*@}}.tgz" .
"""


@pytest.fixture
def npm(tools, tmp_path, stand_ins):
    """An npm that packs the stand-ins; it returns the names of the requested ones."""
    log, packages, copy = tmp_path / "npm.log", tmp_path / "packages", shutil.which("cp", path=os.defpath)
    packages.mkdir()
    for name, content in stand_ins.items():
        (packages / f"{name}.tgz").write_bytes(content)
    program(tools / "npm", NPM.format(log=log, packages=packages, copy=copy))
    return lambda: log.read_text().split() if log.exists() else []


@pytest.fixture(scope="session")
def real_cache(tmp_path_factory):
    """A cache with the real packages but jQuery, which is left to the dashboard."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed (Debian: apt-get install npm)")
    cache = tmp_path_factory.mktemp("cache")
    (folder := cache / "convbench" / "npm").mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o700)
    names = ["@".join(name.rsplit("-", 1)) for name in STAND_INS if not name.startswith("jquery-")]
    if subprocess.run(["npm", "pack", "--ignore-scripts", *names], cwd=folder, capture_output=True, check=False).returncode:
        pytest.skip("npm's package index cannot be reached")
    return cache


@pytest.fixture(scope="session")
def real(original, real_cache, tmp_path_factory):
    """A project whose dashboard has copies of the real files."""
    folder = tmp_path_factory.mktemp("real") / "project"
    shutil.copytree(original, folder)
    project = projects.load(folder / "asv.conf.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(real_cache))
        vendor.make_local(project)
    return project


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """A project with hostile texts, published as by the command, and what that said."""
    project = hostile_project(tmp_path_factory.mktemp("hostile") / "project")
    with contextlib.redirect_stderr(io.StringIO()) as said:
        asv_dashboard.publish(project)
    return SimpleNamespace(project=project, html=project.html, said=said.getvalue())


@pytest.fixture
def visit(browser):
    """A page in the browser."""
    page = browser.new_page()
    yield Visit(page)
    page.close()


# The comparison page


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """A project whose benchmarks became faster in the middle of eight commits, with a gallery. Do not change it."""
    from PIL import Image

    made = Published(tmp_path_factory.mktemp("page") / "project", BENCHMARKS)
    slower = {**TIMES, SWEEP["name"]: [t and 1.5 * t for t in TIMES[SWEEP["name"]]]}
    for times in [slower] * 4 + [TIMES] * 4:
        made.commit = made.add(times, QUARTILES, LINES)
    (made.folder / ".convbench").mkdir()
    Image.new("RGB", (900, 300), "red").save(made.folder / ".convbench" / "gallery.png")
    made.said = made.publish()
    return made


@pytest.fixture
def opened(browser):
    """Opens a page in a browser that no network answers; what goes wrong in it fails the test."""
    with offline_pages(browser) as open_page:
        yield open_page
