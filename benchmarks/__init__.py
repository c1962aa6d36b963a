"""The suite and its instrument: problems, inputs, oracle, clocks, threads. Read by asv, run beside any commit of impls."""

import sys

from benchmarks.harness import asv_types

asv_types.register()

if "run_server" in sys.argv:
    # asv's fork server imports the suite once, and every cell is a fork of it. Importing the libraries here saves each
    # cell seconds. Importing only: one parallel call in the parent would hang the thread pools of every child.
    from benchmarks.harness import cell

    cell.preload()
