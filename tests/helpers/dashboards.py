"""Projects with results for asv's dashboard, packages for it, and what looks at its pages."""

import contextlib
import functools
import http.server
import io
import json
import re
import signal
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import asv
import click
import pytest
from gate_projects import Sample

from convbench.asv import project as projects
from convbench.pages import vendor

PAGE = Path(asv.__file__).with_name("www") / "index.html"
# Whether a canvas has anything on it.
DRAWN = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(value => value)"


# A project with results


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


def project_with_results(folder):
    """Twelve commits with results."""
    sample = Sample(folder)
    store(sample, [sample.commit({}) for _ in range(12)])
    return sample


# The same with texts of others


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
    results = {path: json.loads(path.read_text()) for path in benchmark_file.parent.glob("box/*-env.json")}
    # In the order of the commits: each of the two series has as many results before the step as after it.
    for i, (path, content) in enumerate(sorted(results.items(), key=lambda one: one[1]["date"])):
        kind = str(i % 2)  # of two values: then there are buttons for them
        content |= {"params": {**facts, markup("setting"): markup(kind)}, "env_vars": {markup("VARIABLE"): kind}}
        values = [1e-3, 2e-3, 3e-3, 4e-3]
        content["results"]["lists.time_sort"] = [values, entry["params"], "1", 1_700_000_000_000]
        content["results"][hostile] = content["results"]["lists.time_length"]
        path.write_text(json.dumps(content))


def hostile_project(folder):
    """A project with all of that, whose addresses are scripts as well."""
    sample = project_with_results(folder)
    poison(sample, folder / "results" / "benchmarks.json")
    conf = json.loads((folder / "asv.conf.json").read_text())
    conf |= {"project": markup("project"), "branches": ["main", f"branch{REF}"]}
    conf |= dict.fromkeys(("project_url", "show_commit_url"), "javascript:window.taken=1;//")
    (folder / "asv.conf.json").write_text(json.dumps(conf))
    return projects.load(folder / "asv.conf.json")


# A package index


def packed(files):
    """A package as npm makes them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


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


def program(path, text):
    """A program of our own."""
    path.write_text(text)
    path.chmod(0o755)


# What is done with pages


def tags(page):
    """Source and integrity of every script and style sheet, by the browser's rules of reading a hash."""
    text = page.read_text()
    found = [dict(re.findall(r'([\w-]+)="([^"]*)"', tag)) for tag in re.findall(r"<(?:script|link)\b[^>]*>", text)]
    return [(tag.get("src") or tag.get("href"), tag.get("integrity")) for tag in found]


def failure(project):
    """The one sentence with which it ends, and the page as asv made it."""
    before = (project.html / "index.html").read_bytes()
    with pytest.raises(click.ClickException) as caught:
        vendor.make_local(project)
    assert (project.html / "index.html").read_bytes() == before
    assert "\n" not in caught.value.message
    return caught.value.message


@contextlib.contextmanager
def serving(folder, *command):
    """A command in a process of its own, and the line with which it begins to serve."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, *command], cwd=folder, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process, next((line for line in process.stdout if line.startswith("serving ")), "")
        finally:
            process.kill()


def interrupt(process):
    """Ctrl-C: the exit status, and all that it said after that line."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    return process.returncode, out.strip(), err


@contextlib.contextmanager
def served(folder):
    """A folder at an address, by another server than ours."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
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


@contextlib.contextmanager
def offline_pages(browser):
    """Opens pages that no network answers; what went wrong in them is an error at the end."""
    contexts, wrong = [], []

    def open_page(path, address="", width=1280, first="", as_it_opens=False, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(first)
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url) if request.url.startswith("http") else None)
        page.goto(path.as_uri() + address)
        if not as_it_opens:
            page.evaluate("document.getElementById('choose').open = true")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []
