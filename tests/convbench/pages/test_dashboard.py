"""The command: asv publishes, copies are put beside its page, and the folder is served until Ctrl-C."""

import contextlib
import re
import shutil
import socket
import struct

import click
import psutil
import pytest
from command_line import inside, sentence
from dashboards import interrupt, serving
from gate_projects import Sample

from convbench.pages import asv_dashboard, server, vendor


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
    assert vendor.external((project.html / "index.html").read_text()) == []


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


def test_a_port_that_is_taken(project, npm, monkeypatch):
    monkeypatch.setattr(asv_dashboard, "publish", lambda project: None)  # as it was before
    with taken() as port:
        said = sentence(inside(project.root, "dashboard", "--port", str(port)))
    assert said == f"Error: cannot serve on port {port}: Address already in use; choose another with --port"


def leave(address, path):
    """Ask for a file and go away before it is there, as a browser does when its window is closed."""
    with socket.create_connection(address) as browser:
        browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # no goodbye
        browser.sendall(f"GET /{path} HTTP/1.0\r\nHost: 127.0.0.1:{address[1]}\r\n\r\n".encode())
        browser.recv(100)


def test_ctrl_c_ends_it(project, npm):
    with serving(project.root, "-m", "convbench", "dashboard") as (process, line):
        assert line.startswith(f"serving {project.html} at http://127.0.0.1:")
        (listening,) = [one for one in psutil.Process(process.pid).net_connections() if one.status == psutil.CONN_LISTEN]
        assert f"http://{listening.laddr[0]}:{listening.laddr[1]}/" in line  # to this machine alone
        (project.html / "large").write_bytes(bytes(30_000_000))
        leave(listening.laddr, "large")
        leave(listening.laddr, "missing")
        assert interrupt(process) == (0, "stopped", "")


def test_another_port_where_the_usual_one_is_taken(tmp_path):
    serve = "import sys, pathlib; from convbench.pages import server; server.serve(pathlib.Path(sys.argv[1]), None)"
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # another program has it: as well
            stack.enter_context(taken(server.PORT))
        with serving(tmp_path, "-c", serve, tmp_path) as (process, line):
            assert int(re.search(r":(\d+)/", line)[1]) != server.PORT
            assert interrupt(process) == (0, "stopped", "")


def test_a_folder_that_is_not_asv_s_is_not_removed(project):
    """asv empties the folder that a configuration names."""
    shutil.rmtree(project.html)
    (project.html / "photographs").mkdir(parents=True)
    with pytest.raises(click.ClickException, match="which does not hold its pages"):
        asv_dashboard.publish(project)
    assert (project.html / "photographs").is_dir()


def test_no_module_of_the_project_takes_the_place_of_ours(project):
    """asv itself, above all."""
    (project.root / "asv").mkdir()
    (project.root / "asv" / "__init__.py").write_text("")
    (project.root / "asv" / "__main__.py").write_text("print('theirs')")
    (project.root / "convbench.py").write_text("print('theirs')")
    shutil.rmtree(project.html)
    asv_dashboard.publish(project)
    assert (project.html / "index.json").is_file()
