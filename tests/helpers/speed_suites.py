"""A project with goals for `convbench speed`, and what it stored."""

import shutil
from pathlib import Path

import compressed
from repositories import commit, git

from convbench.speed import measure

ROOT = Path(__file__).parents[2]
DOCS = f"# Speed\n\nProse above.\n\n{measure.BEGIN}\nold\n{measure.END}\n\nProse below.\n"
GOALS = """
baseline = "copy"
beside = []
seconds = 0.01
[[row]]
name = "first"
what = "a filter"
ours = "cpu.shift"
goals = [{ than = "copy", geomean = 0.001 }]
problems = ["n1c1h9w9k1r3s3p1"]
[[row]]
name = "second"
what = "another"
ours = "cpu.shift"
goals = [{ than = "copy", geomean = 100.0, each = 0.5 }]
problems = ["n1c1h8w9k1r3s3p1"]
"""
FIRST, SECOND = "n1c1h9w9k1r3s3p1", "n1c1h8w9k1r3s3p1"


def with_suite(folder, files):
    """Make a project with this suite and these files, everything committed."""
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks", ignore=shutil.ignore_patterns("__pycache__"))
    own = {
        "impls/kernel.py": "",  # for git; what runs is the installed one
        "asv.conf.json": '{"version": 1, "project": "other", "repo": "."}',
        ".gitignore": ".convbench\n__pycache__\n",
    }
    for name, text in {**own, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "--quiet")
    commit(folder, "first")
    return folder


def stored(folder):
    """The text of the file of results, "" where there is none."""
    return "".join(map(compressed.read_text, folder.glob("results/*/speed/*.jsonl.gz")))
