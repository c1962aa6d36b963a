"""Tables of measurements for the choice of `cpu.auto`, and the processor that they are of."""

import json
import math

from impls.conv2d.measurements import LATE, LETTERS

HERE = "Maker 1 2"


def entry(input, weight, late, stride=1, padding=0, dilation=1, groups=1):
    """A measured problem: how many times as long as the fastest each implementation took."""
    return [[*input, weight[0], *weight[2:], stride, padding, padding, dilation, groups], late]


LAYER = entry([1, 64, 56, 56], [64, 64, 3, 3], {"cpu.shift": 1.0, "cpu.fft": 1.25}, padding=1)


def text(tables):
    """The file of such tables: {(instruction set, processor): [entries]}."""
    entries = [one for each in tables.values() for one in each]
    names = list(dict.fromkeys(["cpu.torch", *(name for _, late in entries for name in late)]))
    machines = [
        {
            "instruction_set": instructions,
            "processor": processor,
            "machine": "box",
            "commit": "01234567",
            "date": "2026-11-21",
        }
        for instructions, processor in tables
    ]
    problems = []
    for numbers in dict.fromkeys(tuple(numbers) for numbers, _ in entries):
        lates = [next((late for there, late in each if tuple(there) == numbers), {}) for each in tables.values()]
        problems.append([numbers, *("".join(letter(late, name) for name in names) for late in lates)])
    return json.dumps({"names": names, "machines": machines, "problems": problems})


def letter(late, name):
    """None is unknown; whatever has no time was late."""
    found = late.get(name, LATE)
    return "-" if found is None else LETTERS[round(math.log(found) / math.log(LATE) * (len(LETTERS) - 1))]
