"""The clock on a device, against a device that only keeps books: what it is given in which order, and how long that takes."""

import itertools
import math
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.errors import Skip
from benchmarks.harness.asv_types import CheckedTime
from benchmarks.timing import cuda_clock, device_limits
from benchmarks.timing.clock import Wall
from benchmarks.timing.cuda_clock import Device, Launched, Queued
from benchmarks.timing.prepared_cell import PreparedCell
from convbench.stored.roofline import Roofline


class Books(Device):
    """A device without work: its queue is a list; only launches advance the host's clock; `done` is when the device is idle.

    A call takes `work` seconds on the device and `launch` on the host, which waits for the device where a call `waits`.
    """

    def __init__(self, work, launch, waits=False, capped=0):
        """capped: how many times it says that its power cap slows it, when it is asked while it works."""
        self.work, self.launch, self.waits, self.capped = work, launch, waits, capped
        self.host = self.done = 0.0
        self.queue, self.busy = [], []

    def put(self, what, seconds):
        self.queue.append(what)
        start = max(self.done, self.host)
        self.done = start + seconds
        if what in ("call", "flush"):
            self.busy.append((start, self.done))
        return self.done

    def call(self):
        self.host += self.launch
        self.put("call", self.work)
        if self.waits:
            self.host = self.done
        return len(self.queue)

    def mark(self):
        return self.put("mark", 0.0)

    def occupy(self, seconds):
        self.put("wait", seconds)

    def flush(self):
        self.put("flush", 1e-3)

    def happened(self, mark):
        return mark <= self.host

    def between(self, start, end):
        self.host = max(self.host, end)
        return end - start

    def synchronize(self):
        self.host = max(self.host, self.done)

    def handle(self, management):
        raise LookupError("it has no other name")

    def held_back(self):
        if not self.capped or not any(start <= self.host < end for start, end in self.busy):
            return None
        self.capped -= 1
        return "its power cap"


class Host:
    """The host's clock, taken from the device's books."""

    books = None


@pytest.fixture(autouse=True, scope="module")
def the_host_has_the_clock_of_the_books():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_clock, "perf_counter", lambda: Host.books.host)
        patch.setattr(cuda_clock, "sleep", lambda seconds: setattr(Host.books, "host", Host.books.host + seconds))
        yield


def queued(books, **more):
    Host.books = books
    return Queued(books.call, books, **more)


@given(st.integers(1, 700), st.floats(1e-6, 1e-2), st.floats(1e-6, 1e-4), st.booleans())
@settings(deadline=None)
def test_a_block_is_the_time_of_its_calls_on_the_device(number, work, launch, cold):
    books = Books(work, launch)
    block = queued(books, cold=cold)
    for _ in range(2):  # the first learns how long launches take
        books.queue.clear()
        seconds = block(number)
    assert block.output == len(books.queue) - 1 or cold
    if block.remark is None:
        assert math.isclose(seconds, number * work, rel_tol=1e-6)
    else:
        assert launch * min(number, cuda_clock.MAX_QUEUED_CALLS) > cuda_clock.MAX_WAIT_SECONDS / 6
    assert books.queue.count("call") >= number


def test_the_device_waits_before_the_first_and_no_launch_stands_in_between():
    books = Books(1e-5, 1e-5)
    queued(books)(3)
    assert books.queue == ["wait", "mark", "call", "call", "call", "mark"]


def test_every_cold_call_comes_after_a_flush_that_is_not_counted():
    books = Books(1e-5, 1e-6)
    assert math.isclose(queued(books, cold=True)(2), 2e-5, rel_tol=1e-6)
    assert books.queue == ["wait", *["flush", "mark", "call", "mark"] * 2]


def test_every_block_on_a_device_has_a_cold_view():
    books = Books(1e-5, 1e-6)
    for block in (queued(books), Launched(books.call, books)):
        books.queue.clear()
        found = cuda_clock.cold(block)
        assert found.samples == pytest.approx([1e-5] * 20)
        assert books.queue == ["wait", "flush", "mark", "call", "mark"] * 20
        assert block.output is None
    assert cuda_clock.cold(queued(books, cold=True)) is None
    assert cuda_clock.cold(Wall(books.call)) is None


def test_no_more_calls_are_queued_than_a_device_takes():
    books = Books(1e-6, 1e-6)
    queued(books)(2 * cuda_clock.MAX_QUEUED_CALLS + 1)
    lengths = [len(list(group)) for what, group in itertools.groupby(books.queue) if what == "call"]
    assert lengths == [cuda_clock.MAX_QUEUED_CALLS, cuda_clock.MAX_QUEUED_CALLS, 1]


def test_slow_launches_are_waited_for():
    books = Books(1e-6, 1e-4)  # five times what the clock expects
    block = queued(books)
    assert math.isclose(block(100), 1e-4, rel_tol=1e-6)
    assert block.remark is None


def test_calls_that_wait_for_the_device_cannot_be_queued_and_that_is_said():
    books = Books(1e-3, 1e-5, waits=True)
    block = queued(books)
    assert block(10) >= 1e-2
    assert block.remark == "the device had to wait for the host: launches are part of the time"


def test_what_was_never_queued_is_not_waited_for_three_times_again():
    books = Books(1e-3, 1e-5, waits=True)
    block = queued(books)
    block(10)
    books.queue.clear()
    block(10)
    assert books.queue.count("call") == 10


@pytest.mark.parametrize(("capped", "blocks", "remark"), [(0, 3, None), (1, 6, None), (9, 6, "its power cap held")])
def test_a_cell_whose_clock_is_held_back_is_measured_once_more_and_then_marked(capped, blocks, remark):
    books = Books(1e-3, 1e-5, capped=capped)
    block = queued(books)
    sampled, said = [], []

    class Suite:
        cell = PreparedCell(books.call, block, lambda output: {}, {}, arrays="torch")

        def time_it(self):
            """Only its name is used."""

    made = CheckedTime("suite.time_it", (suite := Suite()).time_it, [suite])
    made.line = SimpleNamespace(close=lambda status, reason, **facts: said.append((status, reason, facts["cold"])))
    made.called = 0.0
    made.benchmark_timing = lambda timer, *plan: ([sampled.append(timer(5)) or sampled[-1] for _ in range(3)], 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_clock, "facts", lambda arrays: {})
        made.run()
    assert len(sampled) == blocks
    ((status, reason, cold),) = said
    assert (status, cold) == ("ok", 1e-3)
    assert reason is remark is None or reason.startswith(remark)


@given(st.integers(1, 700), st.floats(1e-6, 1e-2), st.floats(1e-6, 1e-4), st.booleans())
@settings(deadline=None)
def test_a_device_is_asked_during_its_calls_and_not_while_it_waits_for_them(number, work, launch, cold):
    books = Books(work, launch, capped=10**9)
    block = queued(books, cold=cold)
    block(number)
    # A cause that ends before the next query is not known.
    known = min(number, cuda_clock.MAX_QUEUED_CALLS)
    assert block.held_back or known * work + cold * (known - 1) * 1e-3 < 1.01 * cuda_clock.PAUSE


def test_calls_by_the_hosts_clock_are_marked_too():
    """During a call more than is timed: the books say so only while there is work."""
    Host.books = books = Books(1e-3, 1e-5, capped=1)
    block = Launched(books.call, books)
    assert block(3) > 0
    assert (block.output, block.held_back) == (3, "its power cap")
    assert books.queue == ["call"] * 4
    assert books.host >= books.done


def test_an_unknown_device_has_no_facts(monkeypatch):
    books = Books(1e-3, 1e-5)
    monkeypatch.setattr(cuda_clock, "of", lambda arrays: books)
    assert cuda_clock.facts("torch") == {}
    assert Device.held_back(books) is None


# What the device can do


@pytest.mark.parametrize("limit", device_limits.LIMITS)
def test_a_limit_without_a_device_says_so(limit):
    try:
        cuda_clock.require("torch")
    except ImportError:
        with pytest.raises(Skip, match="unavailable: "):
            device_limits.prepare(limit)


def test_a_device_has_a_roofline_of_its_own():
    roof = Roofline()
    roof.add({"flops": 1e12, "dtype": "float32", "device": "cuda"}, 1, 1.0)
    roof.add({"flops": 1e15, "dtype": "tf32", "device": "cuda"}, 1, 1.0)
    roof.add({"bytes": 10**12, "device": "cuda"}, 1, 1.0)
    roof.add({"flops": 1e9, "dtype": "float32"}, 2, 1.0)
    assert roof.floor(2e12, 1.0, "float32", "cuda") == (2.0, "compute")
    assert roof.floor(2e12, 1e13, "tf32", "cuda") == (10.0, "memory")
    assert roof.floor(1.0, 1.0, "float32", 1) is None
