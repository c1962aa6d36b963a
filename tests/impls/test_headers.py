"""The headers of the compiled kernels: each compiles alone, there is no circle of includes, and a name has one value."""

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADERS = {path.name: path for path in sorted((ROOT / "impls").rglob("*.h"))}
SELECTING = {"_float.h", "_double.h", "_no_type.h"}  # which select a type of element for the others
FOLDERS = sorted({path.parent for path in HEADERS.values()})
MACHINES = {"AVX-512": ["-mavx512f", "-mavx2", "-mfma"], "AVX2": ["-mavx2", "-mfma"], "plain": []}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)$", re.MULTILINE)
ENUMERATION = re.compile(r"\benum\b[^{;]*\{(.*?)\}", re.DOTALL)
INTRINSIC = re.compile(r"\b_mm\w*\(|\b__m(mask)?\d+\b")
CONSTANT = re.compile(r"^static const \w+ (\w+) = (.*);$", re.MULTILINE)


def source(path):
    """A header's text, without comments and with its continued lines joined."""
    return COMMENT.sub(" ", path.read_text().replace("\\\n", " "))


def included(path):
    """The names of the headers beside it that a header includes."""
    return re.findall(r'#[ \t]*include[ \t]+"(\w+\.h)"', source(path))


def values(path):
    """Pairs of names and values that a header defines, but for the guards against being included twice, which have none."""
    text = source(path)
    pairs = [(name, " ".join(value.split())) for name, value in MACRO.findall(text) + CONSTANT.findall(text)]
    for members in ENUMERATION.findall(text):
        pairs += [(member.split("=")[0].strip(), f"{members} {place}") for place, member in enumerate(members.split(","))]
    return [(name, value) for name, value in pairs if value]


def reached(name):
    """The header and all headers that it includes, directly or indirectly."""
    return {name}.union(*(reached(inner) for inner in included(HEADERS[name])))


@pytest.fixture(scope="module")
def compiler():
    found = shutil.which("gcc") or pytest.skip("no gcc")
    return [found, "-std=c11", "-Werror", *(f"-I{folder}" for folder in FOLDERS)]


@pytest.fixture(scope="module")
def machines(compiler, tmp_path_factory):
    """Options for each machine that the compiler knows, with the header of intrinsics compiled once: it takes 0.3 s."""
    found = {"plain": []}
    for machine, options in MACHINES.items():
        header = tmp_path_factory.mktemp("machine") / "intrinsics.h"
        header.write_text("#include <immintrin.h>\n")
        command = [*compiler, *options, "-x", "c-header", header, "-o", f"{header}.gch"]
        if options and subprocess.run(command, capture_output=True).returncode == 0:
            found[machine] = [*options, "-include", str(header)]
    return found


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", HEADERS)
def test_each_header_compiles_alone(name, machine, compiler, machines):
    if machine not in machines:
        pytest.skip("the compiler is for another machine")
    twice = f'#include "{name}"\n#include "{name}"\n'  # the second time it is empty
    command = [*compiler, *machines[machine], "-fsyntax-only", "-x", "c", "-"]
    done = subprocess.run(command, input=twice, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", HEADERS)
def test_headers_include_the_intrinsics_that_they_use(name):
    """The test above compiles the intrinsics beforehand."""
    if INTRINSIC.search(source(HEADERS[name])):
        assert any("#include <immintrin.h>" in source(HEADERS[inner]) for inner in reached(name))


SOURCES = [path for path in sorted((ROOT / "impls").rglob("*")) if path.suffix in {".pyx", ".pxd"}]
KERNELS = [path for path in SOURCES if '#include "' in path.read_text()]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda path: path.name)
def test_headers_of_a_kernel_may_be_included_in_any_order(kernel, backwards, compiler):
    names = set().union(*(reached(name) for name in re.findall(r'#include "(\w+\.h)"', kernel.read_text())))
    lines = [f'#include "{name}"' for name in sorted(names - SELECTING, reverse=backwards)]
    text = "\n".join(['#include "_float.h"', *lines, '#include "_double.h"', *lines])
    done = subprocess.run([*compiler, "-fsyntax-only", "-x", "c", "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_header_includes_itself_by_way_of_others():
    def visit(name, above):
        assert name not in above, " includes ".join([*above, name])
        for inner in included(HEADERS[name]):
            visit(inner, [*above, name])

    for name in HEADERS:
        visit(name, [])


def test_header_names_are_unique():
    assert len(HEADERS) == len(list((ROOT / "impls").rglob("*.h")))


def test_no_name_has_two_values():
    """In one header a name may have a value for each machine."""
    where = defaultdict(lambda: defaultdict(set))
    for header in HEADERS.keys() - SELECTING:
        for name, value in values(HEADERS[header]):
            where[name][header].add(value)
    assert not {name: dict(found) for name, found in where.items() if len(found) > 1}
