"""`gate --installed` compares interpreters and folders of packages that are there already."""

import json
import os
import re
import subprocess
import sys
import venv

import pytest
from command_line import inside
from gate_commits import CODE, SLOWER, interpreter
from gate_projects import Sample

from convbench.gate import installed
from convbench.gate.programs import probe

CELL = ("--bench", r"time_filled", "--budget", "0.3")
SUITE = """
import sample


class Filled:
    sample_time = 0.002

    def time_filled(self):
        return sample.filled(20)
"""
METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n"


def install(packages, code, version="1.0", name="sample"):
    """Put a package of one file into a folder, as pip does it."""
    (packages / name).mkdir(parents=True, exist_ok=True)
    (packages / name / "__init__.py").write_text(code)
    record = packages / f"{name}-{version}.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(METADATA.format(name, version))
    (record / "RECORD").write_text(f"{name}/__init__.py,,\n")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Sample(tmp_path_factory.mktemp("installed") / "project")
    made.commit({"benchmarks/b.py": SUITE})
    return made


@pytest.fixture
def gate(project, tmp_path):
    def run(base, head, *arguments):
        file = tmp_path / "report.json"
        done = inside(project.folder, "gate", "--installed", str(base), str(head), *arguments, "--json", str(file))
        return done, json.loads(file.read_text()) if file.exists() else None

    return run


@pytest.fixture
def active(tmp_path, monkeypatch):
    """An environment with NumPy and asv_runner is the active one; its interpreter."""
    python = interpreter(tmp_path / "active")
    monkeypatch.setenv("PATH", f"{python.parent}{os.pathsep}{os.environ['PATH']}")
    return python


def sites(folder, *codes):
    """Folders of packages as spin makes them, with paths of different lengths, each with its code."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = [
        folder / ("build" + "-long" * number) / "usr" / "lib" / version / "site-packages" for number, _ in enumerate(codes)
    ]
    for packages, code in zip(found, codes, strict=True):
        install(packages, code)
    return found


def test_two_folders_of_packages(gate, tmp_path, active):
    base, head = sites(tmp_path, CODE, SLOWER)
    done, report = gate(base, head, *CELL)
    assert [cell["verdict"] for cell in report["cells"]] == ["regressed"], done.stderr
    assert (report["base"], report["head"]) == (str(base), str(head))
    assert (report["compared"], report["environment"], report["differences"]) == ("installed", "installed", [])
    assert f"again: convbench gate --installed {base} {head} --bench" in done.stdout
    again, _ = gate(tmp_path / "build", tmp_path / "build-long", "--bench", "nothing has this name")
    assert again.stdout.startswith(f"base {base}, head {head}, ")


def test_two_interpreters_are_evened_out_and_their_differences_named(gate, tmp_path):
    pythons = [interpreter(tmp_path / name) for name in ("one", "a-longer-name")]
    for number, python in enumerate(pythons):
        (packages,) = python.parent.parent.glob("lib/python*/site-packages")
        install(packages, CODE + "\nimport sys\nprint(sys.executable, __file__, file=sys.stderr)\n", f"1.{number}")
        install(packages, "", f"{number}.0", "other")
    done, report = gate(*pythons, *CELL)
    assert [cell["verdict"] for cell in report["cells"]] == ["same"], done.stderr
    assert report["differences"] == ["other 0.0 and 1.0", "sample 1.0 and 1.1"]
    assert "; different: other 0.0 and 1.0, sample 1.0 and 1.1\n" in done.stdout


def test_paths_are_as_long_on_both_sides(tmp_path, project, active):
    from convbench.asv.project import find

    longer = interpreter(tmp_path / "a" / "longer" / "name")
    for paths in (sites(tmp_path, CODE, CODE), (active, longer)):
        if paths[0] is active:
            for python in paths:
                install(next(python.parent.parent.glob("lib/python*/site-packages")), CODE)
        built = installed.ready(
            find(project.folder / "asv.conf.json"),
            dict(zip(("base", "head"), map(str, paths), strict=True)),
            tmp_path / "work",
        )
        found = []
        for one in built.values():
            assert one.variables.keys() == {f"ASV{name}" for name in ("", "_PROJECT", "_CONF_DIR", "_ENV_NAME", "_ENV_TYPE")}
            code = "import sample, sys; print(sys.executable, sys.prefix, sample.__file__)"
            env = {"PYTHONPATH": str(one.code)}
            found.append(subprocess.run([one.python, "-c", code], env=env, check=True, capture_output=True, text=True).stdout)
        assert len(found[0]) == len(found[1])
        assert found[0] == found[1].replace("/head/", "/base/")


def test_what_cannot_be_compared(gate, tmp_path, active):
    """One sentence each, and status 2."""
    (site,) = sites(tmp_path, CODE)
    plain = tmp_path / "plain"
    venv.create(plain)
    other = tmp_path / "usr" / "lib" / "python2.6" / "site-packages"
    install(other, CODE)
    (tmp_path / "build" / "usr" / "lib" / "python3.9" / "site-packages").mkdir(parents=True)
    cases = {
        (site, site): "both sides import ",
        (active, active): "both sides import everything",
        (site, tmp_path / "missing"): "is neither an interpreter nor a folder of packages",
        (tmp_path / "build", site): "has several package folders",
        (site, plain): f"has no asv_runner, which runs the suite: {plain}/bin/python -m pip install asv_runner",
        (site, other): "is for python2.6, which is not found",
        (site, "/bin/false"): "cannot list its packages",
    }
    for sides, said in cases.items():
        done, report = gate(*sides)
        assert (done.returncode, report) == (2, None), sides
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_editable_installs_of_one_tree(gate, tmp_path):
    """Both environments import the working tree, so there is nothing to compare."""
    tree = tmp_path / "tree"
    install(tree, CODE)
    pythons = [interpreter(tmp_path / name) for name in ("one", "two")]
    for python in pythons:
        (packages,) = python.parent.parent.glob("lib/python*/site-packages")
        (packages / "editable.pth").write_text(str(tree))
    done, _ = gate(*pythons)
    assert done.returncode == 2
    assert re.search(rf"both sides import {tree}\S*, as editable installs do", done.stderr)


def test_one_side_alone(project):
    done = inside(project.folder, "gate", "--installed", sys.executable)
    assert done.returncode == 2
    assert "--installed needs both sides" in done.stderr


def test_the_probe_names_what_a_distribution_brings(tmp_path, monkeypatch, capsys):
    """The modules may have other names than the project; an editable install gives its location."""
    install(tmp_path, "", name="skthing")
    record = (tmp_path / "skthing-1.0.dist-info").rename(tmp_path / "scikit_thing-1.0.dist-info")
    (record / "METADATA").write_text(METADATA.format("scikit-thing", "1.0"))
    (record / "direct_url.json").write_text(json.dumps({"url": "file:///tree", "dir_info": {"editable": True}}))
    monkeypatch.syspath_prepend(tmp_path)
    probe.main("Scikit_Thing")
    found = json.loads(capsys.readouterr().out)
    assert found["editable"]["scikit-thing"] == "file:///tree"
    assert found["modules"]["skthing"] == str(tmp_path / "skthing" / "__init__.py")
