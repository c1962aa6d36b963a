"""Tables of measurements for the choice of `cpu.auto`, and the processor that they are of."""

HERE = "Maker 1 2"


def entry(input, weight, us, **settings):
    return {"input": input, "weight": weight, **settings, "us": us}


LAYER = entry([1, 64, 56, 56], [64, 64, 3, 3], {"cpu.shift": 10.0, "cpu.fft": 12.5}, padding=1)
