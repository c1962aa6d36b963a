"""Reads asv's results and reports on them: tables, comparisons, history, the gate."""
