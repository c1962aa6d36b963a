"""What several files of tests share."""

import shutil
from pathlib import Path

from repositories import commit, git

ROOT = Path(__file__).parents[2]


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
