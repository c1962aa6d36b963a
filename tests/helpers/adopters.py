"""Another project, with its suite in a sub-folder, at a GitHub stand-in."""

import json

import yaml
from actions import REAL, ROOT, Hub
from gate_projects import BACKEND, FAST, PACKAGE, PYPROJECT, RUNNER, SUITE
from repositories import commit, git
from workflows import write

GATE, COMMENT = (yaml.safe_load((ROOT / f"convbench/adopt/{name}.yml").read_text()) for name in ("gate", "comment"))
CONFIGURATION = {
    "version": 1,
    "project": "sample",
    "repo": "..",
    "branches": ["main"],
    "environment_type": "virtualenv",
    "matrix": {"req": {name: [version] for name, version in RUNNER.items()}},
    "build_command": ["python -m pip wheel --quiet --no-deps --no-build-isolation -w {build_cache_dir} {build_dir}"],
    "install_command": ["in-dir={env_dir} python -m pip install --quiet --no-deps --force-reinstall {wheel_file}"],
}
# In place of convbench where no gate is run: keeps how it was called and with which variables, and reports what it is given.
SCRIPTED = """
printf '%s\\n' "$@" > {folder}/asked; env > {folder}/variables
while [ $# != 0 ]; do
  case $1 in
    --accept-file) cp "$2" {folder}/accepted ;;
    --json) [ ! -f {folder}/gate.json ] || cp {folder}/gate.json "$2" ;;
    --markdown) [ ! -f {folder}/gate.json ] || echo "| cell |" > "$2" ;;
  esac
  shift
done
exit "$(cat {folder}/status)"
"""


class Adopter:
    """The project: main has its first commit, a topic another."""

    def __init__(self, folder, scripted=True):
        folder.mkdir(parents=True, exist_ok=True)
        self.changes = 0
        self.folder, self.hub = folder, Hub(folder, SCRIPTED.format(folder=folder) if scripted else REAL).start()
        self.top = self.hub.remote
        write(self.top / "perf" / "asv.conf.json", json.dumps(CONFIGURATION))
        write(self.top / "perf" / "benchmarks" / "suite.py", SUITE)
        write(self.top / ".gitignore", ".convbench\nenv\n__pycache__\n")
        write(self.top / "pyproject.toml", PYPROJECT)
        write(self.top / "backend.py", BACKEND)
        self.main = self.change(FAST)
        self.result(0)

    def change(self, microseconds=FAST, **files):
        """A commit on the branch that is checked out."""
        write(self.top / "sample" / "__init__.py", PACKAGE.format(microseconds))
        for name, content in files.items():
            write(self.top / name.replace("__", "/"), content)
        self.changes += 1  # no two commits are one, however quickly they are made
        write(self.top / "count", "." * self.changes)
        return commit(self.top, f"change {self.changes}")

    def branch(self, name, start="main"):
        git(self.top, "checkout", "--quiet", "-b", name, start)

    def result(self, status, report=None):
        """The exit status and report of the scripted gate."""
        write(self.folder / "status", str(status))
        (self.folder / "gate.json").unlink(missing_ok=True)
        if report is not None:
            write(self.folder / "gate.json", json.dumps(report))

    def asked(self):
        return (self.folder / "asked").read_text().splitlines()


def passes(run):
    return run.jobs == {"gate": ("gate", "success")}


def fails(run):
    return run.jobs == {"gate": ("gate", "failure")}
