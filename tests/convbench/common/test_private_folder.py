"""Another user's files in a shared folder are never taken for our own: compiled code, names of kernels, downloads."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import click
import pytest

import impls
from benchmarks.commands import jit_names
from convbench.common import private_folder
from impls import private_cache

ROOT = Path(__file__).parents[3]
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
BOTH = [(private_folder.folder, click.ClickException), (private_cache.folder, impls.Unavailable)]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    return tmp_path


@pytest.mark.parametrize(("folder", "_refused"), BOTH)
@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_a_folder_is_made_for_this_user_alone_whatever_the_umask(cache, folder, _refused, umask):
    old = os.umask(umask)
    try:
        made = folder("name")
    finally:
        os.umask(old)
    assert folder("name") == made
    assert made.parent.parent == cache
    assert made.parent.stat().st_mode & 0o777 == 0o700


def open_to_others(top, _):
    top.mkdir(mode=0o700)
    top.chmod(0o770)


def of_another_user(top, _):
    top.mkdir(mode=0o700)
    os.chown(top, NOBODY, NOBODY)


def a_link(top, tmp_path):
    (tmp_path / "there").mkdir(mode=0o700)
    top.symlink_to(tmp_path / "there")


def a_file(top, _):
    top.touch()


@as_root
@pytest.mark.parametrize(("folder", "refused"), BOTH)
@pytest.mark.parametrize("plant", [open_to_others, of_another_user, a_link, a_file])
def test_what_another_user_was_first_to_make_is_refused(cache, folder, refused, plant):
    plant(cache / {private_folder.folder: "convbench", private_cache.folder: "impls"}[folder], cache)
    with pytest.raises(refused, match=str(cache)):
        folder("name")


# Numba keeps pickles of where its code is, and torch's compiler of what it has compiled.


def python(code, *arguments, **variables):
    command, environment = [sys.executable, "-c", code, *arguments], {**os.environ, **variables}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() + done.stderr.strip()


CALL = """
import numpy as np, impls
try:
    print(impls.load(NAME)(np.ones((1, 1, 5, 5), np.float32), np.ones((1, 1, 3, 3), np.float32)).shape)
except impls.Unavailable as error:
    print("Unavailable:", error)
"""


class Evil:
    def __init__(self, proof):
        self.proof = proof

    def __reduce__(self):
        return Path.touch, (self.proof,)


@pytest.mark.slow
@as_root
def test_numba_runs_nothing_from_a_cache_that_another_user_can_write_to(tmp_path):
    cache, proof = tmp_path / "cache", tmp_path / "proof"
    cache.mkdir()
    call = CALL.replace("NAME", "'cpu.numba_loops'")
    assert python(call, NUMBA_CACHE_DIR=str(cache)) == "(1, 1, 3, 3)"
    indices = list(cache.rglob("*.nbi"))
    assert indices
    for path in indices:
        path.write_bytes(pickle.dumps(Evil(proof)))
        path.parent.chmod(0o777)
    for owner in (NOBODY, 0):
        for path in indices:
            os.chown(path.parent, owner, owner)
        said = python(call, NUMBA_CACHE_DIR=str(cache))
        assert said.startswith("Unavailable: cpu.numba_loops cannot be loaded: compiled code in ")
        assert "NUMBA_CACHE_DIR" in said
        assert not proof.exists()


# Loads the implementation, and once more for each folder that is named.
FOLDERS = """
import importlib, os, sys, impls

impls.load("cpu.torch_compile")
print(os.environ["TORCHINDUCTOR_CACHE_DIR"])
for os.environ["TORCHINDUCTOR_CACHE_DIR"] in sys.argv[1:]:
    try:
        importlib.reload(sys.modules["impls.conv2d.cpu.torch_compile"])
        print(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    except impls.Unavailable as error:
        print("Unavailable:", error)
"""


@pytest.mark.slow
@as_root
def test_the_compiler_of_torch_keeps_to_a_folder_of_this_user(tmp_path, monkeypatch):
    """torch's default folder in the shared temporary folder has a name that any user can take first."""
    pytest.importorskip("torch", reason="torch is not installed")
    shared = tmp_path / "tmp"
    shared.mkdir()
    planted = shared / "torchinductor_root"
    planted.mkdir()
    planted.chmod(0o777)
    os.chown(planted, NOBODY, NOBODY)
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    named = str(planted), str(tmp_path / "own")
    said = python(FOLDERS, *named, TMPDIR=str(shared), XDG_CACHE_HOME=str(tmp_path / "cache"))
    if "C++ compiler" in said:
        pytest.skip("no C++ compiler is installed")
    unnamed, refused, own = said.splitlines()
    assert unnamed == str(tmp_path / "cache" / "impls" / "torchinductor")
    assert refused.startswith("Unavailable: cpu.torch_compile needs a folder of its own: compiled code in ")
    assert own == str(tmp_path / "own")


# The list of kernels for Linux's perf lies in the shared temporary folder, under the number of a process.


@pytest.fixture
def listed(tmp_path, monkeypatch):
    path = tmp_path / "perf-1.map"
    monkeypatch.setattr(jit_names, "_list", lambda: path)
    monkeypatch.delenv("ONEDNN_JIT_PROFILE", raising=False)
    return path


def test_a_list_of_kernels_is_asked_for_once_its_name_is_ours(listed):
    listed.write_text("of an earlier process")
    jit_names.announce()
    assert os.environ["ONEDNN_JIT_PROFILE"] == "2"
    assert listed.read_text() == ""
    listed.write_text("10 20 kernel of ours\n")
    assert (16, 48, "kernel of ours (compiled at run time)") in jit_names.compiled()


@as_root
@pytest.mark.parametrize("link", [False, True])
def test_a_list_that_another_user_has_made_is_neither_read_nor_written(listed, tmp_path, link):
    precious = tmp_path / "precious"
    precious.write_text("10 20 kernel of theirs\n")
    if link:
        listed.symlink_to(precious)
    else:
        listed.write_text(precious.read_text())
        os.chown(listed, NOBODY, NOBODY)
    jit_names.announce()
    assert "ONEDNN_JIT_PROFILE" not in os.environ
    assert not any("theirs" in name for *_, name in jit_names.compiled())
    assert precious.read_text() == "10 20 kernel of theirs\n"
