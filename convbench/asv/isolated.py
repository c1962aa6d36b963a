"""Runs asv with its output in a folder of the caller's: python -m convbench.asv.isolated FOLDER ARGUMENTS OF ASV.

asv writes its files in place, its results once per commit, and takes its results folder from its configuration alone. With a
private folder a run can be stopped anywhere, and only finished files are published. Its list of machines
is otherwise in the home folder, where every start of asv writes it again: cut short, it would stop all that come after.
"""

import os
import sys
from pathlib import Path

from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.machine import MachineCollection
from asv.main import main

from convbench.asv import failed_cells
from convbench.asv.machine import MACHINES


def use(folder: str) -> None:
    """Have asv in this process keep results and machines in a folder."""
    from_json = Config.from_json

    def with_private_results(content):
        conf = from_json(content)
        conf.results_dir = folder
        return conf

    Config.from_json = with_private_results
    MachineCollection.get_machine_file_path = staticmethod(lambda: str(Path(folder, MACHINES)))


def listed(cls, conf, _repo, _environments, _commits, regex=None, check=False):
    """The benchmarks that were listed when the commit was built: asv lists them anew in each call, which takes seconds."""
    return cls.load(conf, regex)


if __name__ == "__main__":
    use(sys.argv.pop(1))
    Benchmarks.discover = classmethod(listed)
    if side_file := os.environ.get("CONVBENCH_CELLS"):
        failed_cells.keep(Path(side_file))
    main()
