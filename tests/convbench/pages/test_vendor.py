"""Copies of the files that asv's page loads from other hosts, from a package index of our own."""

import base64
import hashlib
import re
import shutil
import sys

import pytest
from dashboards import PAGE, STAND_INS, failure, packed, program, tags

from convbench.pages import vendor


def test_every_file_from_elsewhere_is_replaced_by_a_copy_and_its_hash(project, npm):
    page = project.html / "index.html"
    before = tags(page)
    vendor.make_local(project)
    after = tags(page)
    assert vendor.external(page.read_text()) == []
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
    vendor.make_local(project)
    changed = [(old, new) for old, new in zip(before, page.read_text().splitlines(), strict=True) if old != new]
    assert len(changed) == 10
    assert "onerror" not in page.read_text()  # no script in an attribute may run
    assert all('rel="stylesheet"' in new for old, new in changed if "<link" in old)


def test_what_was_fetched_once_is_not_fetched_again(project, npm, tools):
    vendor.make_local(project)
    asked = npm()
    assert sorted(asked) == sorted(f"{name}@{version}" for name, _, version in (one.rpartition("-") for one in STAND_INS))
    shutil.rmtree(project.html / "vendor")
    shutil.copy(PAGE, project.html)
    (tools / "npm").unlink()
    vendor.make_local(project)
    assert vendor.external((project.html / "index.html").read_text()) == []
    assert npm() == asked


# What cannot be had


def test_without_npm(project, tools):
    said = failure(project)
    assert f"{project.html / 'index.html'} takes " in said
    assert "jquery-3.3.1.min.js, and npm" in said
    assert "install it (Debian: apt-get install npm)" in said
    assert not (project.html / "vendor").exists()


@pytest.mark.parametrize("prefix", ["npm ERR!", "npm error"])
def test_without_a_network(project, tools, prefix):
    """With the messages of npm 9 and of npm 10."""
    text = f"#!{sys.executable}\nimport sys\nsys.exit('{prefix} code ENOTFOUND\\n{prefix} network request failed')\n"
    program(tools / "npm", text)
    said = failure(project)
    assert "jquery-3.3.1.min.js, and npm cannot fetch jquery@3.3.1, which has it: ENOTFOUND" in said
    assert said.endswith("; until then it needs a network")


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
def test_an_unknown_file(project, npm, tag):
    page = project.html / "index.html"
    page.write_text(page.read_text().replace("</head>", f"{tag}\n</head>"))
    said = failure(project)
    assert re.search(r'(https?:)?//[^"]+', tag)[0] in said
    assert "name one in PACKAGES of convbench/pages/npm_packages.py" in said


def test_a_package_without_the_file(project, npm, tmp_path):
    (tmp_path / "packages" / "blueimp-md5-2.19.0.tgz").write_bytes(packed({"js/md5.js.map": ""}))
    assert "md5.min.js, and blueimp-md5@2.19.0 of npm has no md5.min.js" in failure(project)


def test_a_cache_that_cannot_be_made(project, npm, cache):
    cache.parent.mkdir(parents=True, mode=0o700)
    cache.write_text("")
    assert "set XDG_CACHE_HOME to another folder" in failure(project)


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
    vendor.make_local(project)
    assert outside.read_text() == "theirs"
    assert not path.is_symlink()


def test_a_page_with_copies_keeps_them(project, npm):
    vendor.make_local(project)
    before = {path: path.read_bytes() for path in project.html.glob("**/*.*") if path.is_file()}
    vendor.make_local(project)
    assert {path: path.read_bytes() for path in project.html.glob("**/*.*") if path.is_file()} == before


# What loads something


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
    (found,) = vendor.external(f"<html><head>{tag}</head></html>")
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
    assert vendor.external(text) == []
