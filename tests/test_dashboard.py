"""asv's dashboard with copies of what its page takes from other hosts: in a real browser that reaches no other host."""

import base64
import contextlib
import functools
import hashlib
import http.server
import io
import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import asv
import click
import psutil
import pytest
from gate_projects import Sample
from test_cli_errors import inside, sentence

from convbench import dashboard
from convbench import project as projects

PAGE = Path(asv.__file__).with_name("www") / "index.html"
# In the packages of these the file is not, byte for byte, what asv's hash says.
OTHER_BYTES = {
    *(f"jquery.flot{part}.min.js" for part in ("", ".time", ".selection", ".categories")),  # not minified
    "stupidtable.min.js",  # a newer version
}


# A project with results, published


def store(sample, commits):
    """Results of two benchmarks for every commit; the one without parameters takes twice as long from the middle on."""
    lists = {"type": "time", "unit": "seconds", "timeout": 60, "version": "1", "code": "sorted([3, 1, 2])"}
    known = {
        "lists.time_length": {**lists, "name": "lists.time_length", "params": [], "param_names": []},
        "lists.time_sort": {
            **lists,
            "name": "lists.time_sort",
            "params": [["'quick'", "'merge'"]],
            "param_names": ["algorithm"],
        },
    }
    sample.write({"results/benchmarks.json": json.dumps({**known, "version": 2})})
    sample.write({"results/box/machine.json": json.dumps({"machine": "box", "version": 1})})
    for i, commit in enumerate(commits):
        time = 1e-3 if i < len(commits) / 2 else 2e-3
        content = {
            "version": 2,
            "commit_hash": commit,
            "env_name": "env",
            "date": 1_700_000_000_000 + 86_400_000 * i,
            "params": {"machine": "box"},
            "python": "3.11",
            "requirements": {},
            "env_vars": {},
            "result_columns": ["result", "params", "version", "started_at"],
            "results": {
                "lists.time_length": [[time], [], "1", 1_700_000_000_000],
                "lists.time_sort": [[1e-3, 3e-3], [["'quick'", "'merge'"]], "1", 1_700_000_000_000],
            },
            "durations": {},
        }
        sample.write({f"results/box/{commit[:8]}-env.json": json.dumps(content)})


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A project as asv publishes it. Do not change it."""
    sample = Sample(tmp_path_factory.mktemp("original") / "project")
    store(sample, [sample.commit({}) for _ in range(12)])
    dashboard.publish(projects.load(sample.folder / "asv.conf.json"))
    return sample.folder


@pytest.fixture
def project(original, tmp_path):
    """A copy of it, as published, to be changed."""
    folder = tmp_path / "project"
    shutil.copytree(original, folder)
    return projects.load(folder / "asv.conf.json")


# A package index of our own


def packed(files):
    """A package as npm makes them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


CSS = "@font-face{src:url('../fonts/a.eot?#iefix')}body{background:url(b.png),url(data:image/png;base64,AA),url(gone.png)}"
STAND_INS = {
    "jquery-3.3.1": {"dist/jquery.min.js": "let jquery", "dist/jquery.slim.min.js": "let slim"},
    "flot-charts-0.8.3": {
        f"jquery.flot{part}.js": f"let flot{part[1:]}" for part in ("", ".time", ".selection", ".categories", ".pie")
    },
    "flot-orderbars-1.0.0": {"js/jquery.flot.orderBars.js": "let bars"},
    "stupid-table-plugin-1.1.3": {"stupidtable.min.js": "let stupid", "examples/old/stupidtable.min.js": "let old"},
    "blueimp-md5-2.19.0": {"js/md5.min.js": "let md5"},
    "bootstrap-3.1.1": {
        "dist/js/bootstrap.min.js": "let bootstrap",
        "dist/css/bootstrap.min.css": CSS,
        "dist/css/b.png": "picture",
        "dist/fonts/a.eot": "font",
        "dist/fonts/unused.eot": "font",
        "docs/dist/css/bootstrap.min.css": "old",
    },
}
NPM = """#!{python}
import pathlib, shutil, sys
with open({log!r}, "a") as log:
    log.write(sys.argv[-1] + "\\n")
name = sys.argv[-1].replace("@", "-") + ".tgz"
shutil.copy(pathlib.Path({packages!r}, name), name)
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A PATH with git alone; writing an npm there is left to the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").symlink_to(shutil.which("git"))
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def npm(tools, tmp_path):
    """An npm that packs the stand-ins; it gives the names of those that were asked for."""
    packages, log = tmp_path / "packages", tmp_path / "npm.log"
    packages.mkdir()
    for name, files in STAND_INS.items():
        (packages / f"{name}.tgz").write_bytes(packed(files))
    program(tools / "npm", NPM.format(python=sys.executable, log=str(log), packages=str(packages)))
    return lambda: log.read_text().split() if log.exists() else []


def tags(page):
    """Source and integrity of every script and style sheet, by the browser's rules of reading a hash."""
    text = page.read_text()
    found = [dict(re.findall(r'([\w-]+)="([^"]*)"', tag)) for tag in re.findall(r"<(?:script|link)\b[^>]*>", text)]
    return [(tag.get("src") or tag.get("href"), tag.get("integrity")) for tag in found]


def failure(project):
    """The one sentence with which it ends, and the page as asv made it."""
    before = (project.html / "index.html").read_bytes()
    with pytest.raises(click.ClickException) as caught:
        dashboard.make_local(project)
    assert (project.html / "index.html").read_bytes() == before
    assert "\n" not in caught.value.message
    return caught.value.message


def test_every_file_from_elsewhere_is_replaced_by_a_copy_and_its_hash(project, npm):
    page = project.html / "index.html"
    before = tags(page)
    dashboard.make_local(project)
    after = tags(page)
    assert dashboard.external(page.read_text()) == []
    assert "crossorigin" not in page.read_text()
    assert [old == new for old, new in zip(before, after, strict=True)] == ["//" not in (old[0] or "") for old in before]
    copies = [one for one in after if one[1]]
    assert len(copies) == 10
    for path, integrity in copies:
        content = (project.html / path).read_bytes()
        assert integrity == "sha384-" + base64.b64encode(hashlib.sha384(content).digest()).decode()
    expected = [
        "jquery-3.3.1/dist/jquery.min.js",
        *(f"flot-charts-0.8.3/jquery.flot{part}.js" for part in ("", ".time", ".selection", ".categories")),
        "flot-orderbars-1.0.0/js/jquery.flot.orderBars.js",
        "stupid-table-plugin-1.1.3/stupidtable.min.js",
        "blueimp-md5-2.19.0/js/md5.min.js",
        "bootstrap-3.1.1/dist/js/bootstrap.min.js",
        "bootstrap-3.1.1/dist/css/bootstrap.min.css",
    ]
    assert [path for path, _ in copies] == [f"vendor/{path}" for path in expected]
    written = {
        str(path.relative_to(project.html / "vendor")) for path in project.html.glob("vendor/**/*.*") if path.is_file()
    }
    assert written == {*expected, "bootstrap-3.1.1/dist/css/b.png", "bootstrap-3.1.1/dist/fonts/a.eot"}


def test_all_else_in_the_page_stays_as_it_was(project, npm):
    page = project.html / "index.html"
    before = page.read_text().splitlines()
    dashboard.make_local(project)
    changed = [(old, new) for old, new in zip(before, page.read_text().splitlines(), strict=True) if old != new]
    assert len(changed) == 10
    assert all('onerror="js_load_failure()"' in new for old, new in changed if "onerror" in old)
    assert all('rel="stylesheet"' in new for old, new in changed if "<link" in old)


def test_what_was_fetched_once_is_not_fetched_again(project, npm, tools):
    dashboard.make_local(project)
    asked = npm()
    assert sorted(asked) == sorted(f"{name}@{version}" for name, _, version in (one.rpartition("-") for one in STAND_INS))
    shutil.rmtree(project.html)
    dashboard.publish(project)
    (tools / "npm").unlink()
    dashboard.make_local(project)
    assert dashboard.external((project.html / "index.html").read_text()) == []
    assert npm() == asked


DAMAGE = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "its last bytes missing": lambda content: content[:-4],
    "a byte flipped": lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
    "no package": lambda content: b"<html>not found</html>",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_copy_is_fetched_anew(project, npm, tools, tmp_path, damage):
    kept = project.work / "web" / "jquery-3.3.1.tgz"
    shutil.copytree(tmp_path / "packages", kept.parent)
    whole = kept.read_bytes()
    kept.write_bytes(DAMAGE[damage](whole))
    dashboard.make_local(project)
    assert kept.read_bytes() == whole
    assert npm() == ["jquery@3.3.1"]
    assert (project.html / "vendor/jquery-3.3.1/dist/jquery.min.js").read_text() == "let jquery"
    shutil.copy(PAGE, project.html)
    kept.write_bytes(DAMAGE[damage](whole))
    (tools / "npm").unlink()
    assert "jquery@3.3.1, is not installed" in failure(project)


# What cannot be had


def test_without_npm(project, tools):
    said = failure(project)
    assert f"{project.html / 'index.html'} takes " in said
    assert "jquery-3.3.1.min.js, and npm" in said
    assert "install it (Debian: apt-get install npm)" in said
    assert not (project.html / "vendor").exists()


@pytest.mark.parametrize("prefix", ["npm ERR!", "npm error"])
def test_without_a_network(project, tools, prefix):
    """As npm 9 says it, and as npm 10 does."""
    text = f"#!{sys.executable}\nimport sys\nsys.exit('{prefix} code ENOTFOUND\\n{prefix} network request failed')\n"
    program(tools / "npm", text)
    said = failure(project)
    assert "jquery-3.3.1.min.js, and npm cannot fetch jquery@3.3.1, which has it: ENOTFOUND" in said
    assert said.endswith("; till then it needs a network")


@pytest.mark.parametrize("status", [0, 7])
def test_npm_that_does_not_say_why(project, tools, status):
    """Also one that is configured to write nothing or elsewhere."""
    program(tools / "npm", f"#!/bin/sh\nexit {status}\n")
    assert f"npm cannot fetch jquery@3.3.1, which has it: status {status}" in failure(project)


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn.example/ajax/libs/d3/7.9.0/d3.min.js"></script>',
        '<script src="//cdn.example/bootstrap.min.js"></script>',
        '<link href="http://cdn.example/npm/pico@1.5.0/pico.css" rel="stylesheet"/>',
        '<img src="https://cdn.example/bird.png">',
    ],
)
def test_a_file_that_nobody_knows(project, npm, tag):
    page = project.html / "index.html"
    page.write_text(page.read_text().replace("</head>", f"{tag}\n</head>"))
    said = failure(project)
    assert re.search(r'(https?:)?//[^"]+', tag)[0] in said
    assert "name one in PACKAGES of convbench/dashboard.py" in said


def test_a_package_without_the_file(project, npm, tmp_path):
    (tmp_path / "packages" / "blueimp-md5-2.19.0.tgz").write_bytes(packed({"js/md5.js.map": ""}))
    assert "md5.min.js, and blueimp-md5@2.19.0 of npm has no md5.min.js" in failure(project)


@pytest.mark.parametrize("name", [".convbench", ".convbench/web", "html/vendor", "html/.index.html.new"])
def test_what_cannot_be_written(project, npm, name):
    """A file where a folder should be, and the other way round, stop root as well."""
    path = project.root / name
    path.parent.mkdir(exist_ok=True)
    if name.endswith(".new"):
        path.mkdir()
    else:
        path.write_text("")
    assert f"cannot write to {path}" in failure(project)


@pytest.mark.parametrize(
    ("tag", "name", "source"),
    [
        ('<script src="https://a.example/b.js"></script>', "script", "src"),
        ("<SCRIPT SRC=//a.example/b.js></SCRIPT>", "script", "src"),
        ('<link rel="stylesheet" href="http://a.example/b.css"/>', "link", "href"),
        ('<iframe src="https://a.example"></iframe>', "iframe", "src"),
    ],
)
def test_what_is_loaded_from_elsewhere(tag, name, source):
    (found,) = dashboard.external(f"<html><head>{tag}</head></html>")
    assert (found.name, found.source) == (name, source)
    assert tag.startswith(found.text)


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://a.example">there</a>',
        '<script src="asv.js"></script><img src="/swallow.png"><link href="asv.css">',
        '<!-- <script src="https://a.example/b.js"></script> -->',
        """<script>write('<script src="https://a.example/b.js">')</script>""",
        "<script></script><link><img src>",
    ],
)
def test_what_is_not(text):
    assert dashboard.external(text) == []


@pytest.mark.parametrize(
    ("path", "library"),
    [
        ("/jquery-3.3.1.min.js", ("jquery", "3.3.1", "jquery.min.js")),
        ("/ajax/libs/flot/0.8.3/jquery.flot.time.min.js", ("flot-charts", "0.8.3", "jquery.flot.time.min.js")),
        ("/npm/flot-orderbars@1.0.0/js/a.orderBars.js", ("flot-orderbars", "1.0.0", "a.orderBars.js")),
        ("/ajax/libs/blueimp-md5/2.19.0/js/md5.min.js", ("blueimp-md5", "2.19.0", "md5.min.js")),
        ("/npm/bootstrap@3.4.1/dist/css/bootstrap.min.css?a=1", ("bootstrap", "3.4.1", "bootstrap.min.css")),
    ],
)
def test_a_library_is_known_by_its_address(path, library):
    found = dashboard.Library.at(f"https://cdn.example{path}")
    assert (found.package, found.version, found.file) == library


# The command


def test_no_results(tmp_path):
    sample = Sample(tmp_path / "project")
    assert sentence(inside(sample.folder, "dashboard")) == (
        "Error: no results yet in results/: measure with `convbench run --quick` first"
    )


def test_what_asv_cannot_publish(project):
    (project.results / "benchmarks.json").write_text("{")
    assert "`asv publish` ended with status 1: " in sentence(inside(project.root, "dashboard"))


def test_a_folder_of_pages_that_cannot_be_made(project):
    shutil.rmtree(project.html)
    project.html.write_text("")
    assert "`asv publish` ended with status 1: " in sentence(inside(project.root, "dashboard"))


def test_the_pages_alone(project, npm):
    done = inside(project.root, "dashboard", "--no-serve")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith(f"the dashboard is in {project.html}")
    assert dashboard.external((project.html / "index.html").read_text()) == []


def test_a_failure_is_not_served(project, tools):
    done = inside(project.root, "dashboard")
    assert "is not installed" in sentence(done)
    assert done.stdout == "publishing\n"


@contextlib.contextmanager
def taken(port=0):
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_that_is_taken(project, npm):
    with taken() as port:
        said = sentence(inside(project.root, "dashboard", "--port", str(port)))
    assert said == f"Error: cannot serve on port {port}: Address already in use; choose another with --port"


@contextlib.contextmanager
def serving(project, *arguments):
    """The command in a process of its own, and the line with which it begins to serve."""
    command = [sys.executable, "-m", "convbench", "dashboard", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=project.root, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process, next((line for line in process.stdout if line.startswith("serving ")), "")
        finally:
            process.kill()


def interrupt(process):
    """Ctrl-C: the exit status, and all that it said after that line."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    return process.returncode, out.strip(), err


def leave(address, path):
    """Ask for a file and go away before it is there, as a browser does when its window is closed."""
    with socket.create_connection(address) as browser:
        browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # no goodbye
        browser.sendall(f"GET /{path} HTTP/1.0\r\n\r\n".encode())
        browser.recv(100)


def test_ctrl_c_ends_it(project, npm):
    with serving(project) as (process, line):
        assert line.startswith(f"serving {project.html} at http://127.0.0.1:")
        (listening,) = [one for one in psutil.Process(process.pid).net_connections() if one.status == psutil.CONN_LISTEN]
        assert f"http://{listening.laddr[0]}:{listening.laddr[1]}/" in line  # to this machine alone
        (project.html / "large").write_bytes(bytes(30_000_000))
        leave(listening.laddr, "large")
        leave(listening.laddr, "missing")
        assert interrupt(process) == (0, "stopped", "")


def test_another_port_where_the_usual_one_is_taken(project, npm):
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # somebody else has it: as well
            stack.enter_context(taken(dashboard.PORT))
        with serving(project) as (process, line):
            assert int(re.search(r":(\d+)/", line)[1]) != dashboard.PORT
            assert interrupt(process) == (0, "stopped", "")


# In a browser, with the real packages


@pytest.fixture(scope="module")
def real(original, tmp_path_factory):
    """A project whose dashboard has copies of the real files."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed (Debian: apt-get install npm)")
    if subprocess.run(["npm", "view", "jquery@3.3.1", "version"], capture_output=True, check=False).returncode:
        pytest.skip("npm's package index cannot be reached")
    folder = tmp_path_factory.mktemp("real") / "project"
    shutil.copytree(original, folder)
    project = projects.load(folder / "asv.conf.json")
    dashboard.make_local(project)
    return project


@contextlib.contextmanager
def served(folder):
    """A folder at an address, by another server than ours."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


class Visit:
    """A page in the browser, and what it asked for and complained about."""

    def __init__(self, page):
        self.page, self.asked, self.complaints = page, [], []
        page.set_default_timeout(20_000)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("requestfailed", lambda request: self.complaints.append(request.url))
        page.on("response", lambda answer: self.complaints.extend([answer.url] if answer.status >= 400 else []))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.extend([said.text] if said.type == "error" else []))


@pytest.fixture
def visit(browser):
    page = browser.new_page()
    yield Visit(page)
    page.close()


DRAWN = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(value => value)"


def test_as_asv_makes_it_the_page_needs_a_network(original, visit):
    with served(original / "html") as address:
        visit.page.goto(address)
        visit.page.wait_for_url("**/error.html")


def test_every_page_of_the_dashboard_works_without_a_network(real, visit):
    page = visit.page
    with served(real.html) as address:
        page.goto(address)
        grid = page.locator("#summarygrid-display a.benchmark-container")
        grid.first.wait_for()
        assert sorted(grid.locator(".benchmark-text").all_inner_texts()) == ["time_length", "time_sort"]
        assert page.locator("#summarygrid-display canvas.flot-base").first.evaluate(DRAWN)

        grid.filter(has_text="time_sort").click()
        graph = page.locator("#main-graph canvas.flot-base")
        graph.wait_for()
        assert graph.evaluate(DRAWN)
        assert page.locator("#overview canvas.flot-base").evaluate(DRAWN)
        # The benchmark's own parameter along the x axis: flot's categories, and its bars side by side.
        page.get_by_role("button", name="algorithm", exact=True).click()
        page.wait_for_function("document.querySelector('#main-graph').innerText.includes('merge')")
        assert graph.evaluate(DRAWN)

        page.get_by_role("link", name="Benchmark list").click()
        rows = page.locator("#summarylist-body tbody tr")
        rows.first.wait_for()
        for first in ("('quick')", "('merge')"):  # the least time on top, then the greatest
            page.locator("#summarylist-body th").get_by_text("Value", exact=True).click()
            page.locator("#summarylist-body tbody tr:first-child", has_text=first).wait_for()
        assert rows.count() == 3

        page.get_by_role("link", name="Regressions").click()
        page.locator("#regressions-body").get_by_text("lists.time_length").first.wait_for()
        asked = [url for url in visit.asked if not url.startswith(address)]
    assert (asked, visit.complaints) == ([], [])


def test_what_the_scripts_define_is_there(real, visit):
    with served(real.html) as address:
        visit.page.goto(address)
        visit.page.locator("a.benchmark-container").first.wait_for()
        assert visit.page.evaluate("$.fn.jquery") == "3.3.1"
        plugins = set(visit.page.evaluate("$.plot.plugins.map(plugin => plugin.name)"))
        assert plugins >= {"time", "selection", "categories", "orderBars", "axisLabels"}
        assert visit.page.evaluate("$.plot.version") == "0.8.3"
        assert visit.page.evaluate("[typeof $.fn.stupidtable, typeof md5, typeof $.fn.tooltip]") == ["function"] * 3
        assert visit.page.locator("#nav").evaluate("nav => getComputedStyle(nav).position") == "fixed"  # the style sheet


def test_a_copy_that_was_changed_is_refused_by_the_browser(real, visit, tmp_path):
    shutil.copytree(real.html, tmp_path / "html")
    (changed,) = tmp_path.glob("html/vendor/jquery-*/dist/jquery.min.js")
    changed.write_text(changed.read_text() + "\n")
    with served(tmp_path / "html") as address:
        visit.page.goto(address)
        visit.page.wait_for_url("**/error.html")


def test_which_copies_are_what_asv_takes_byte_for_byte(real):
    other = set()
    for (url, integrity), (path, _) in zip(tags(PAGE), tags(real.html / "index.html"), strict=True):
        if integrity:
            algorithm, _, expected = integrity.partition("-")
            digest = hashlib.new(algorithm, (real.html / path).read_bytes()).digest()
            if base64.b64encode(digest).decode() != expected:
                other.add(url.rpartition("/")[2])
    assert other == OTHER_BYTES


def test_the_command_serves_it(real, visit):
    with serving(real) as (process, line):
        visit.page.goto(re.search(r"http://\S+", line)[0])
        visit.page.locator("a.benchmark-container").first.wait_for()
        visit.page.close()
        assert interrupt(process) == (0, "stopped", "")
    assert visit.complaints == []
