"""Two installations are compared by the files that a process can load."""

import shutil
import subprocess

import pytest

from convbench.changed import builds
from convbench.changed.builds import Kind

COMMITS = {"base": "1234567" + 33 * "0", "head": "89abcde" + 33 * "0"}
CODE = '"""A module."""\n\nLIMIT = 3\n\n\ndef plain(n):\n    return n + 1\n'


@pytest.fixture
def compared(tmp_path, monkeypatch):
    """What differs between two folders of files, {name: text}, in front of what both sides share."""
    monkeypatch.setattr(builds, "_search_path", lambda install: ("3", "/usr", "/env", [install.folder / "code"]))

    def compare(base, head):
        installs = {}
        for side, files in (("base", base), ("head", head)):
            code = tmp_path / side / "code"
            code.mkdir(parents=True)
            for name, content in files.items():
                path = code / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
            installs[side] = builds.Install("python", {}, tmp_path / side, COMMITS[side])
        return builds.compare(installs)

    return compare


SAME = {
    "the same": ({"p/a.py": CODE}, {"p/a.py": CODE}),
    "compiled": ({"p/a.py": CODE, "p/__pycache__/a.pyc": "1"}, {"p/a.py": CODE, "p/__pycache__/a.pyc": "2"}),
    "a comment": ({"p/a.py": CODE}, {"p/a.py": CODE + "\n# more\n"}),
    "layout": ({"p/a.py": CODE}, {"p/a.py": CODE.replace("n + 1", "(n  +  1)")}),
    "records": (
        {"p/a.py": "", "p-1.dist-info/RECORD": "1", "p-1.dist-info/direct_url.json": "1"},
        {"p/a.py": "", "p-2.dist-info/RECORD": "2"},
    ),
    "a description": (
        {"p/a.py": "", "p-1.dist-info/METADATA": "Version: 1\n\nA package.\n"},
        {"p/a.py": "", "p-1.dist-info/METADATA": "Version: 1\n\nMore.\n"},
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_what_is_the_same(compared, case):
    found = compared(*SAME[case])
    assert found.is_none, found
    assert (found.ignored, found.empty) == ((), ())


FULL = "{{'full': '{0}', 'date': '2026-11-0{1}T10:00:00+0000'}}"
NAMED = {
    "a hash": ("COMMIT = '{0}'", "COMMIT = '{0}'"),
    "a short one": ("VERSION = '1.0+{0:.8}'", "VERSION = '1.0+{0:.8}'"),
    "dates beside it": (FULL.replace("{1}", "1"), FULL.replace("{1}", "2")),
    "a number beside it": ("VERSION = 0, 1, 'dev3', 'g{0:.7}'", "VERSION = 0, 1, 'dev4', 'g{0:.7}'"),
}


@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize("case", NAMED)
def test_the_commit_that_a_file_names_is_ignored_and_the_file_is_named(compared, case, more):
    """A file that differs in more than the commit is not ignored."""
    texts = [text.format(COMMITS[side]) for side, text in zip(COMMITS, NAMED[case], strict=True)]
    found = compared({"p/_version.py": texts[0]}, {"p/_version.py": texts[1] + "\nX = 2" * more})
    assert found.is_none is not more
    assert found.ignored == (() if more else ("p/_version.py",))


DIFFERENT = {
    "a constant": ({"p/a.py": CODE}, {"p/a.py": CODE.replace("3", "4")}, Kind.SOURCE, None),
    "a body": ({"p/a.py": CODE}, {"p/a.py": CODE.replace("n + 1", "n + 2")}, Kind.SOURCE, ["plain"]),
    "a new module": ({"p/b.py": ""}, {"p/b.py": "", "p/a.py": CODE}, Kind.SOURCE, None),
    "data": ({"p/a.json": "1", "p/b.py": ""}, {"p/a.json": "2", "p/b.py": ""}, Kind.DATA, None),
    "data that is gone": ({"p/a.json": "1", "p/b.py": ""}, {"p/b.py": ""}, Kind.DATA, None),
    "no ELF file": ({"p/a.abi3.so": "1"}, {"p/a.abi3.so": "2"}, Kind.SHARED_OBJECT, None),
    "no Python": ({"p/a.py": "print 1"}, {"p/a.py": "print 2"}, Kind.SOURCE, None),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_differs(compared, case):
    base, head, kind, functions = DIFFERENT[case]
    found = compared(base, head)
    (change,) = found.changes
    assert change.kind is kind
    assert (change.functions and [one.name for one in change.functions.head]) == functions
    assert change.package == "p"


def test_a_version_is_read_by_what_opens_it(compared):
    sides = [{"p/a.py": "", f"p-{version}.dist-info/METADATA": f"Version: {version}\n"} for version in (1, 2)]
    (change,) = compared(*sides).changes
    assert (change.name, change.package) == ("p.dist-info/METADATA", "p.dist-info")


def test_data_outside_of_packages_belongs_to_none(compared):
    (change,) = compared({"p/a.py": "", "data/a.h5": "1"}, {"p/a.py": "", "data/a.h5": "2"}).changes
    assert (change.name, change.package) == ("data/a.h5", None)


def test_libraries_and_data_of_environments_of_their_own_are_compared(compared, tmp_path, monkeypatch):
    for side in COMMITS:
        for name in ("share/p/model.bin", "lib/libopenblas.so.0", "lib/python3/not.so"):
            file = tmp_path / side / "env" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(side)

    def search_path(install):
        return "3", "/usr", str(install.folder / "env"), [install.folder / "code"]

    monkeypatch.setattr(builds, "_search_path", search_path)
    found = compared({"p/a.py": ""}, {"p/a.py": ""})
    assert [change.name for change in found.changes] == ["lib/libopenblas.so.0", "share/p/model.bin"]


def test_a_path_of_its_own_is_no_difference_but_in_what_links_elsewhere(compared, tmp_path):
    files = [
        {"p/a.py": f"HERE = {str(tmp_path / side / 'code')!r}\n", "p.pth": str(tmp_path / side / "code")} for side in COMMITS
    ]
    assert [change.name for change in compared(*files).changes] == ["p.pth"]


def test_a_side_without_a_file_is_named(compared):
    assert compared({"p/a.py": CODE}, {"p-1.dist-info/RECORD": ""}).empty == ("head",)


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc is installed")
@pytest.mark.parametrize(
    ("head", "options", "same"),
    [
        ("int f(void) { return 1; }", ["-g", "-Wl,--build-id=0x12"], True),
        ("int f(void) { return 2; }", ["-g", "-Wl,--build-id=0x34"], False),
        ("int f(void) { return 1; } int g(void) { return 1; }", [], False),
    ],
)
def test_shared_objects_are_compared_by_what_is_loaded(compared, tmp_path, head, options, same):
    built = []
    for number, (code, more) in enumerate([("int f(void) { return 1; }", ["-Wl,--build-id=0x34"]), (head, options)]):
        source, output = tmp_path / "f.c", tmp_path / f"{number}.so"
        source.write_text(code)
        subprocess.run(["gcc", "-shared", "-fPIC", *more, "-o", output, source], check=True)
        built.append(output.read_bytes())
    assert built[0] != built[1]
    assert compared({"p/f.so": built[0]}, {"p/f.so": built[1]}).is_none is same
