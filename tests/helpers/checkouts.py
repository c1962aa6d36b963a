"""Copies of this checkout to which files are added, and convbench on them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# As in a checkout of one's own: the editable install would find this checkout's package first.
FIRST = "import sys\nsys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != 'MesonpyMetaFinder']\n"


def copied(folder):
    """The working tree's tracked files without its results."""
    for path in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines():
        if (ROOT / path).is_file() and not path.startswith("results/"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, folder / path)
    return folder


def tried(folder, command):
    """What `convbench try` says in a copy: {implementation: status}. command: its words from "try" on."""
    site = folder.with_name(f"{folder.name}-site")
    site.mkdir()
    (site / "sitecustomize.py").write_text(FIRST)
    run = [sys.executable, "-m", "convbench", *command, "--json", "--seconds", "0.05"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(folder)])}
    done = subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return {cell["implementation"]: cell["status"] for cell in json.loads(done.stdout)}
