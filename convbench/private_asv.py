"""asv with its results in a folder of the caller's: python -m convbench.private_asv FOLDER ARGUMENTS OF ASV.

asv writes its files in place, once per commit, and takes its results folder from its configuration alone. With a private
folder a run can be stopped anywhere, and only finished files are moved to where everybody reads.
"""

import sys

from asv.config import Config
from asv.main import main

if __name__ == "__main__":
    folder = sys.argv.pop(1)
    from_json = Config.from_json

    def with_private_results(content):
        conf = from_json(content)
        conf.results_dir = folder
        return conf

    Config.from_json = with_private_results
    main()
