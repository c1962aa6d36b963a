"""A clock that runs at a set speed."""

from benchmarks.timing import clock


class Fake(clock.Block):
    """A block that takes a given time a call without spending it."""

    def __init__(self, seconds, first=None):
        self.seconds, self.first, self.blocks = seconds, first, []

    def __call__(self, number):
        per_call = self.first if self.first and not self.blocks else self.seconds
        self.blocks.append(number)
        self.output = len(self.blocks)
        return per_call * number
