"""The table of counters, from what perf 6.1 writes: a whole report, several kinds of core, a machine that has none."""

import contextlib

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convbench.suite import counters

REPORT = """\
# started on Sun Nov 29 17:58:07 2026

250.00;msec;task-clock:u;250000000;100.00;0.998;CPUs utilized
12;;page-faults:u;250000000;100.00;48.000;/sec
750000000;;cycles:u;250000000;100.00;3.000;GHz
1800000000;;instructions:u;200000000;80.00;2.40;insn per cycle
;;;;;0.02;stalled cycles per insn
90000000;;branches:u;250000000;80.00;360.000;M/sec
450000;;branch-misses:u;250000000;80.00;0.50;of all branches
600000000;;L1-dcache-loads:u;250000000;80.00;2.400;G/sec
48000000;;L1-dcache-load-misses:u;250000000;80.00;8.00;of all L1-dcache accesses
<not supported>;;cache-references:u;0;100.00;;
30000;;cache-misses:u;250000000;80.00;;
<not counted>;;dTLB-load-misses:u;0;0.00;;
"""
TABLE = """\
    a call  event
   2.50 ms  task-clock
     0.120  page-faults
 7,500,000  cycles                 3.00 GHz
18,000,000  instructions           2.40 a cycle
   900,000  branches               5.0 % of instructions
     4,500  branch-misses          0.5 % of branches
 6,000,000  L1-dcache-loads        33 % of instructions
   480,000  L1-dcache-load-misses  8.0 % of L1-dcache-loads
       300  cache-misses

the processor counts a few events at a time: each was counted for at least 80 % of the time, and scaled up"""
HERE = """\
# started on Sun Nov 29 17:58:07 2026

299.66;msec;task-clock:u;299656362;100.00;0.599;CPUs utilized
0;;page-faults:u;299656362;100.00;0.000;/sec
<not supported>;;cycles:u;0;100.00;;
<not supported>;;instructions:u;0;100.00;;
"""


def test_a_report_is_a_table():
    assert counters.render(counters.read(REPORT), 100) == TABLE


@pytest.mark.parametrize("report", [HERE, "", "perf: nonsense\n;;;;;\n"])
def test_a_machine_without_counters_says_so(report):
    with pytest.raises(click.ClickException) as caught:
        counters.read(report)
    assert caught.value.message == counters.NONE


@pytest.mark.parametrize("name", ["cpu_{}/cycles:u/", "cpu_{}/cycles/u", "cpu_{}/cycles/"])
def test_kinds_of_core_count_a_part_of_the_time_each(name):
    """Each is scaled to the whole by perf, so that they may not be added."""
    lines = f"4000;;{name.format('core')};750;75.00;;\n1000;;{name.format('atom')};250;25.00;;\n"
    assert counters.read(lines) == {"cycles": counters.Counter(3250.0)}
    pinned = f"4000;;{name.format('core')};1000;100.00;;\n<not counted>;;{name.format('atom')};0;0.00;;\n"
    assert counters.read(pinned) == {"cycles": counters.Counter(4000.0)}


@given(st.text(alphabet="0123456789.;:<>u/\n -ceylsC", max_size=300))
def test_a_damaged_report_is_read_or_refused(text):
    with contextlib.suppress(click.ClickException):
        assert counters.render(counters.read(text), 1)
