"""asv's dashboard with copies of what its page takes from other hosts: in a real browser that reaches no other host."""

import base64
import contextlib
import functools
import gzip
import hashlib
import http.client
import http.server
import io
import json
import os
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
from types import SimpleNamespace

import asv
import click
import psutil
import pytest
from asv.util import UserError
from command_line import inside, sentence
from gate_projects import Sample

from convbench.asv import project as projects
from convbench.asv import safe_pages
from convbench.pages import dashboard

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


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own for every test, where dashboards keep packages."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "convbench" / "npm"


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
    assert "onerror" not in page.read_text()  # no script in an attribute may run
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
def test_a_damaged_copy_is_fetched_anew(project, npm, tools, tmp_path, cache, damage):
    kept = cache / "jquery-3.3.1.tgz"
    cache.parent.mkdir(parents=True, mode=0o700)
    shutil.copytree(tmp_path / "packages", cache)
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
    assert "name one in PACKAGES of convbench/pages/dashboard.py" in said


def test_a_package_without_the_file(project, npm, tmp_path):
    (tmp_path / "packages" / "blueimp-md5-2.19.0.tgz").write_bytes(packed({"js/md5.js.map": ""}))
    assert "md5.min.js, and blueimp-md5@2.19.0 of npm has no md5.min.js" in failure(project)


def test_a_cache_that_cannot_be_made(project, npm, cache):
    cache.parent.mkdir(parents=True, mode=0o700)
    cache.write_text("")
    assert "name another place with XDG_CACHE_HOME" in failure(project)


@pytest.mark.parametrize(
    "plant", [lambda vendor, other: vendor.write_text(""), lambda vendor, other: vendor.symlink_to(other)]
)
def test_no_copy_goes_through_what_lies_there(project, npm, tmp_path, plant):
    """A file where a folder should be stops root as well, and so does a link to one."""
    vendor, other = project.html / "vendor", tmp_path / "other"
    other.mkdir()
    plant(vendor, other)
    assert f"cannot write to {vendor}" in failure(project)
    assert list(other.iterdir()) == []


def test_copies_go_into_a_fresh_folder(project, npm, tmp_path):
    outside = tmp_path / "outside.js"
    outside.write_text("theirs")
    path = project.html / "vendor/jquery-3.3.1/dist/jquery.min.js"
    path.parent.mkdir(parents=True)
    path.symlink_to(outside)
    dashboard.make_local(project)
    assert outside.read_text() == "theirs"
    assert not path.is_symlink()


def test_a_page_with_copies_keeps_them(project, npm):
    dashboard.make_local(project)
    before = {path: path.read_bytes() for path in project.html.glob("**/*.*") if path.is_file()}
    dashboard.make_local(project)
    assert {path: path.read_bytes() for path in project.html.glob("**/*.*") if path.is_file()} == before


# Packages that are not to be trusted


def archive(*members):
    """A package with a jQuery and what is given: (name, type, what it is a link to or has in it)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        for name, kind, text in (("package/dist/jquery.min.js", tarfile.REGTYPE, "let jquery"), *members):
            member = tarfile.TarInfo(name)
            member.type = kind
            if kind in (tarfile.LNKTYPE, tarfile.SYMTYPE):
                member.linkname = text
            else:
                member.size = len(text)
            file.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


PLANTED = {
    "above": ("package/../../../planted", tarfile.REGTYPE, "theirs"),
    "above, in the middle": ("package/a/../../../../planted", tarfile.REGTYPE, "theirs"),
    "absolute": ("/planted", tarfile.REGTYPE, "theirs"),
    "absolute behind the folder": ("package//planted", tarfile.REGTYPE, "theirs"),
    "backslashes": ("package/..\\..\\planted", tarfile.REGTYPE, "theirs"),
    "a drive": ("package/C:planted", tarfile.REGTYPE, "theirs"),
    "the folder itself": ("planted", tarfile.REGTYPE, "theirs"),
    "a link": ("package/planted", tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link": ("package/planted", tarfile.LNKTYPE, "package/dist/jquery.min.js"),
    "a pipe": ("package/planted", tarfile.FIFOTYPE, ""),
    "a folder above": ("package/../planted", tarfile.DIRTYPE, ""),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_package_with_a_file_elsewhere_is_refused(project, npm, tmp_path, cache, kind):
    (tmp_path / "packages" / "jquery-3.3.1.tgz").write_bytes(archive(PLANTED[kind]))
    said = failure(project)
    assert f"jquery@3.3.1 of npm has {PLANTED[kind][0]!r}, which is no file inside of the package" in said
    assert not list(cache.glob("*.tgz"))  # none is kept


def test_a_style_sheet_leads_to_no_file_elsewhere(project, npm, tmp_path):
    """Its addresses are looked up among the package's files, one of which lies above the folder of the pages."""
    files = {**STAND_INS["bootstrap-3.1.1"], "dist/css/bootstrap.min.css": "a{src:url(../../../../../../planted)}"}
    (tmp_path / "packages" / "bootstrap-3.1.1.tgz").write_bytes(packed({**files, "../../../../planted": "theirs"}))
    with contextlib.suppress(click.ClickException):
        dashboard.make_local(project)
    assert not list(tmp_path.glob("**/planted"))
    assert "which is no file inside of the package" in failure(project)


def test_a_package_is_not_unpacked_without_end(project, npm, tmp_path):
    """A thousand to one, and once more inside: nothing of it is kept or written."""
    large = gzip.compress(bytes(dashboard.LARGEST + 1))
    (tmp_path / "packages" / "jquery-3.3.1.tgz").write_bytes(large)
    assert "jquery@3.3.1 of npm has more than 64 MiB" in failure(project)
    (tmp_path / "packages" / "jquery-3.3.1.tgz").write_bytes(gzip.compress(archive(("package/a", tarfile.REGTYPE, "a"))))
    assert "what npm has fetched as jquery@3.3.1 is no package" in failure(project)


def test_a_sparse_file_is_not_unpacked(project, npm, tmp_path):
    """Its header says how many zeros it stands for."""
    header = tarfile.TarInfo("package/planted")
    header.type, header.size = tarfile.GNUTYPE_SPARSE, 512
    block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    block[386:482] = b"0" * 11 + b"\0" + b"0" * 8 + b"1000\0"[:4] + bytes(72)
    block[483:495] = b"10000000000\0"  # 1 GiB
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    whole = gzip.decompress(archive())
    (tmp_path / "packages" / "jquery-3.3.1.tgz").write_bytes(gzip.compress(bytes(block) + bytes(512) + whole))
    assert "jquery@3.3.1 of npm has 'package/planted', which is no file" in failure(project)


def test_npm_fetches_no_package(project, npm, tmp_path):
    (tmp_path / "packages" / "jquery-3.3.1.tgz").write_bytes(b"<html>not found</html>")
    assert "what npm has fetched as jquery@3.3.1 is no package" in failure(project)


def test_a_project_brings_no_packages_along(project, npm):
    """What a clone has in its work folder is not used."""
    kept = project.work / "web" / "jquery-3.3.1.tgz"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(packed({"dist/jquery.min.js": "let theirs"}))
    dashboard.make_local(project)
    assert "jquery@3.3.1" in npm()
    assert (project.html / "vendor/jquery-3.3.1/dist/jquery.min.js").read_text() == "let jquery"


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
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as our server, which takes a port that was just left
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
        browser.sendall(f"GET /{path} HTTP/1.0\r\nHost: 127.0.0.1:{address[1]}\r\n\r\n".encode())
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


# What the server answers


@pytest.fixture
def site(tmp_path):
    """A folder to serve, in which links lead elsewhere, and the port it is served at."""
    folder, other = tmp_path / "site", tmp_path / "other"
    for made in (folder / "graphs", other):
        made.mkdir(parents=True)
    for path in (
        folder / "index.html",
        folder / "a.json",
        folder / "graphs" / "b.json",
        other / "index.html",
        other / "secret",
    ):
        path.write_text(f"<script>let a</script>{path.parent.name}")
    (folder / "hard").hardlink_to(folder / "a.json")
    (folder / "inside").symlink_to("a.json")
    (folder / "secret").symlink_to(other / "secret")
    (folder / "other").symlink_to(other)
    (folder / "page").mkdir()
    (folder / "page" / "index.html").symlink_to(other / "index.html")
    (folder / "circle").symlink_to("circle")
    os.mkfifo(folder / "pipe")
    with dashboard._Server(folder, 0) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def answer(port, path, method="GET", hosts=None):
    """Status, headers and content. hosts: the lines that say which one is asked, instead of the server's own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    for host in (f"127.0.0.1:{port}",) if hosts is None else hosts:
        connection.putheader("Host", host)
    connection.endheaders()
    reply = connection.getresponse()
    found = reply.status, reply.headers, reply.read().decode()
    connection.close()
    return found


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "LocalHost:{}"])
def test_its_own_names(site, host):
    assert answer(site, "/a.json", hosts=[host.format(site)])[::2] == (200, "<script>let a</script>site")


OTHERS = {
    "another name": ["evil.example:{}"],
    "none": [],
    "empty": [""],
    "another port": ["127.0.0.1:1"],
    "no port": ["127.0.0.1"],
    "one that begins like ours": ["localhost:{}.evil.example"],
    "two": ["127.0.0.1:{}", "evil.example"],
    "another address of this machine": ["127.0.0.2:{}"],
}


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("path", ["/", "/a.json", "/missing"])
def test_a_request_to_another_host_is_refused(site, path, others):
    """As of a page whose name was made to mean this machine after it was opened."""
    status, headers, text = answer(site, path, hosts=[host.format(site) for host in OTHERS[others]])
    assert status == 421
    assert "site" not in text
    assert "Content-Security-Policy" in headers


@pytest.mark.parametrize(
    "path",
    ["/secret", "/other/secret", "/other/", "/other", "/page/", "/circle", "/pipe", "/graphs/", "/graphs", "/%00",
     "/../other/secret", "/%2e%2e/other/secret", "/..%2fother/secret", "/inside/", "/missing"],
)  # fmt: skip
def test_nothing_but_files_of_the_folder(site, path):
    """No link out of it, no pipe that would never end, and no list of a folder's files."""
    status, _, text = answer(site, path)
    assert status == 404
    assert "other" not in text
    assert "b.json" not in text


@pytest.mark.parametrize("path", ["/a.json", "/graphs/b.json", "/hard", "/inside", "/", "/index.html", "/a.json?timestamp=1"])
def test_every_file_of_the_folder(site, path):
    assert answer(site, path)[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_no_other_method(site, method):
    status, _, text = answer(site, "/a.json", method)
    assert status == 501
    assert "site" not in text


def test_head_has_no_content(site):
    status, headers, text = answer(site, "/index.html", "HEAD")
    assert (status, text) == (200, "")
    assert headers["Content-Length"] == str(len("<script>let a</script>site"))


@pytest.mark.parametrize("path", ["/", "/a.json", "/missing"])
def test_what_a_browser_is_told(site, path):
    _, headers, _ = answer(site, path)
    policy = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
    inline = f"'sha256-{base64.b64encode(hashlib.sha256(b'let a').digest()).decode()}'"
    assert policy["script-src"].split() == ["'self'", *([inline] if path == "/" else [])]
    for what in ("default-src", "base-uri", "form-action", "frame-ancestors"):
        assert policy[what] == "'none'"
    told = {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    assert {name: headers[name] for name in told} == told


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
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
        visit.page.wait_for_load_state()
    assert any("integrity" in said and changed.name in said for said in visit.complaints)
    assert visit.page.evaluate("typeof jQuery") == "undefined"


def test_which_copies_are_what_asv_takes_byte_for_byte(real):
    other = set()
    for (url, integrity), (path, _) in zip(tags(PAGE), tags(real.html / "index.html"), strict=True):
        if integrity:
            algorithm, _, expected = integrity.partition("-")
            digest = hashlib.new(algorithm, (real.html / path).read_bytes()).digest()
            if base64.b64encode(digest).decode() != expected:
                other.add(url.rpartition("/")[2])
    assert other == OTHER_BYTES


# With texts of others


def markup(place):
    """A text that is to be shown as it stands; as HTML it runs a script."""
    return f'{place}<img src=x onerror="window.taken = 1">&lt;{place}'


REF = "<img/src=x/onerror=window.taken=1>&lt;"  # the same, as a branch or a tag may be called


def poison(sample, benchmark_file):
    """Write markup wherever results and the repository have text; with values along another axis than commits."""
    sample.git("branch", f"branch{REF}")
    sample.git("tag", f"tag{REF}", "HEAD~6")
    known = json.loads(benchmark_file.read_text())
    entry = known["lists.time_sort"]
    entry |= {"pretty_name": markup("pretty"), "code": markup("code"), "unit": markup("unit"), "type": "track"}
    entry |= {"param_names": [markup("parameter"), "size"]}
    entry["params"] = [[repr(markup("value")), "<class 'float'>"], ["1", "2"]]
    hostile = f"lists{markup('group')}.time_{markup('name')}"
    known[hostile] = {**known["lists.time_length"], "name": hostile}
    known["lists.time_length"]["code"] = markup("code")
    benchmark_file.write_text(json.dumps(known))
    facts = {"machine": markup("machine"), markup("fact"): markup("details")}
    (benchmark_file.parent / "box" / "machine.json").write_text(json.dumps({**facts, "version": 1}))
    for i, path in enumerate(sorted(benchmark_file.parent.glob("box/*-env.json"))):
        content = json.loads(path.read_text())
        kind = str(i % 2)  # of two values: then there are buttons for them
        content |= {"params": {**facts, markup("setting"): markup(kind)}, "env_vars": {markup("VARIABLE"): kind}}
        values = [1e-3, 2e-3, 3e-3, 4e-3]
        content["results"]["lists.time_sort"] = [values, entry["params"], "1", 1_700_000_000_000]
        content["results"][hostile] = content["results"]["lists.time_length"]
        path.write_text(json.dumps(content))


def hostile_project(folder, plugins=()):
    """A project with all of that, whose addresses are scripts as well."""
    sample = Sample(folder)
    store(sample, [sample.commit({}) for _ in range(12)])
    poison(sample, folder / "results" / "benchmarks.json")
    conf = json.loads((folder / "asv.conf.json").read_text())
    conf |= {"project": markup("project"), "branches": ["main", f"branch{REF}"], "plugins": list(plugins)}
    conf |= dict.fromkeys(("project_url", "show_commit_url"), "javascript:window.taken=1;//")
    (folder / "asv.conf.json").write_text(json.dumps(conf))
    return projects.load(folder / "asv.conf.json")


@pytest.fixture(scope="module")
def hostile(real, tmp_path_factory):
    """Such a project, published by the command, with copies of the real files."""
    project = hostile_project(tmp_path_factory.mktemp("hostile") / "project")
    dashboard.publish(project)
    shutil.copytree(real.html / "vendor", project.html / "vendor")
    shutil.copy(real.html / "index.html", project.html)
    return project


INJECTED = "document.querySelectorAll('img[src=x], [onerror]').length"


class Shown:
    """Looks for text in a page that nothing may have been injected into."""

    def __init__(self, page):
        self.page = page

    def text(self, place, selector):
        self.page.locator(selector).get_by_text(markup(place), exact=False).first.wait_for(state="attached")
        self.nothing_else()

    def tooltip(self, place, over):
        """Bootstrap's, which has no place on the screen for so long a text."""
        over.dispatch_event("mouseover")
        self.text(place, ".tooltip-inner")
        over.dispatch_event("mouseout")

    def nothing_else(self):
        assert (self.page.evaluate("window.taken"), self.page.evaluate(INJECTED)) == (None, 0)


def test_markup_is_text_on_every_page(hostile, visit):
    page, shown = visit.page, Shown(visit.page)
    with served(hostile.html) as address:
        page.goto(address)
        page.locator("a.benchmark-container").nth(1).wait_for()
        shown.nothing_else()
        assert page.locator("#summarygrid-display h1").all_inner_texts() == ["lists"]
        shown.text("project", "#project-name")
        shown.text("pretty", ".benchmark-text")
        shown.tooltip("code", page.locator(".benchmark-plot").first)

        page.goto(f"{address}#lists.time_sort")
        page.locator("#main-graph canvas.flot-base").wait_for()
        for place in ("parameter", "setting"):
            shown.text(place, ".panel-heading")
        page.locator(".panel-heading").get_by_text(f"env-{markup('VARIABLE')}").wait_for(state="attached")
        for place in ("0", "value", "machine"):
            shown.text(place, "#graphdisplay-navigation .btn")
        shown.text("value", "#main-graph .legendLabel")
        shown.text("pretty", "#graphdisplay-navigation .tree li a")
        shown.tooltip("code", page.locator("#graphdisplay-navigation .tree li").first)
        shown.tooltip("details", page.locator("#graphdisplay-navigation .btn", has_text="machine").first)
        assert page.locator("#main-graph").get_by_text(f"tag{REF}").count() == 1
        revision = page.evaluate("Number(Object.keys($.asv.main_json.revision_to_hash)[0])")
        point = f"{{datapoint: [{revision}, 0.001], pageX: 300, pageY: 300}}"
        page.evaluate(f"void $('#main-graph').trigger('plothover', [{{}}, {point}])")
        shown.text("unit", ".tooltip-inner")
        for axis in ("size", markup("parameter")):
            page.locator("#graphdisplay-navigation-params .btn", has_text=axis).first.click()
            page.wait_for_function(f"location.hash.includes({json.dumps('x-axis=')})")
            page.locator("#main-graph canvas.flot-base").wait_for()
            shown.nothing_else()
        shown.text("value", "#main-graph .tickLabel, #main-graph .flot-tick-label")

        page.goto(f"{address}#/summarylist")
        page.locator("#summarylist-body tbody tr").first.wait_for()
        for place in ("pretty", "value"):
            shown.text(place, "#summarylist-body td a")
        shown.text("unit", "#summarylist-body td.value")
        shown.text("setting", "#summarylist-navigation .panel-heading")
        shown.tooltip("details", page.locator("#summarylist-navigation .btn", has_text="machine").first)
        page.goto(f"{address}#/regressions")
        page.locator("#regressions-body").get_by_text("lists.time_length").first.wait_for()
        page.locator("#regressions-body .dropdown-menu").get_by_text(f"branch{REF}").wait_for(state="attached")
        links = page.locator("a[href]").evaluate_all("links => links.map(link => link.protocol)")
        shown.nothing_else()
    assert set(links) == {"http:", "https:"}
    assert [said for said in visit.complaints if "Error" in said] == []


def test_graphs_of_values_that_look_like_markup_are_drawn(hostile, visit):
    with served(hostile.html) as address:
        visit.page.goto(f"{address}#lists.time_sort?p-size=1&x-axis=commit")
        for text in ("float", markup("value")):
            visit.page.locator("#main-graph .legendLabel", has_text=text).first.wait_for()
        assert visit.page.locator("#main-graph canvas.flot-base").evaluate(DRAWN)


def test_what_cannot_be_shown_safely_is_left_out(tmp_path, capsys):
    project = hostile_project(tmp_path / "project")
    dashboard.publish(project)
    said = capsys.readouterr().err
    assert "asv's pages leave out the benchmark 'listsgroup<img src=x onerror=" in said
    for setting in ("project_url", "show_commit_url"):
        assert f"asv's pages leave out {setting} of the configuration: 'javascript:window.taken=1;//'" in said
    index = json.loads((project.html / "index.html").with_suffix(".json").read_text())
    assert list(index["benchmarks"]) == ["lists.time_length", "lists.time_sort"]
    assert [index["project_url"], index["show_commit_url"]] == ["#", "#"]
    feed = (project.html / "regressions.xml").read_text()
    assert "lists.time_length" in feed
    assert "javascript" not in feed


def test_the_plugin_alone_does_the_same(tmp_path):
    """As `asv publish` in a project that names it."""
    project = hostile_project(tmp_path / "project", [".convbench.pages"])
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
    """What they make HTML of is not known."""
    for path in PAGE.parent.glob("*.js"):
        (tmp_path / path.name).write_text(path.read_text().replace("+ group +", "+ group + group +"))
    conf = SimpleNamespace(html_dir=str(tmp_path), project_url="#", show_commit_url="#")
    with pytest.raises(UserError, match=r"summarygrid.js is not that of asv 0.6.6"):
        safe_pages.Text.publish(conf, None, {}, None, None)


def test_a_folder_that_is_not_asv_s_is_not_removed(project):
    """asv empties the folder that a configuration names."""
    shutil.rmtree(project.html)
    (project.html / "photographs").mkdir(parents=True)
    with pytest.raises(click.ClickException, match="which are not its pages"):
        dashboard.publish(project)
    assert (project.html / "photographs").is_dir()


def test_no_module_of_the_project_takes_the_place_of_ours(project):
    """asv itself, above all."""
    (project.root / "asv").mkdir()
    (project.root / "asv" / "__init__.py").write_text("")
    (project.root / "asv" / "__main__.py").write_text("print('theirs')")
    (project.root / "convbench.py").write_text("print('theirs')")
    shutil.rmtree(project.html)
    dashboard.publish(project)
    assert (project.html / "index.json").is_file()


# The command, in a browser


MISSING = "Failed to load resource: the server responded with a status of 404 (Not Found)"


def test_the_command_serves_it(real, visit):
    page = visit.page
    with serving(real) as (process, line):
        address = re.search(r"http://\S+", line)[0]
        page.goto(address)
        page.locator("a.benchmark-container").first.wait_for()
        page.goto(f"{address}#lists.time_sort")
        page.locator("#main-graph canvas.flot-base").wait_for()
        for name in ("summarylist", "regressions"):
            page.goto(f"{address}#/{name}")
            page.locator(f"#{name}-body tbody tr").first.wait_for()
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x.png onerror=\"window.taken = 1\">')")
        page.evaluate(
            "document.head.append(Object.assign(document.createElement('script'), {textContent: 'window.taken = 2'}))"
        )
        page.wait_for_function("document.images[document.images.length - 1].complete")
        assert page.evaluate("window.taken") is None
        refused = [said for said in visit.complaints if "Content Security Policy" in said]
        page.close()
        assert interrupt(process) == (0, "stopped", "")
    assert len(refused) == 2
    assert [said for said in visit.complaints if said not in refused] == [f"{address}x.png", MISSING]
