"""torch's ResNet-18 and Adam on tiles that no library reads: the system's call, and one compiled pass to the values.

0.9e9 FLOPs a tile of 64x64 pixels, thrice those of a pass forward; extra memory: gradients, and 2 MB a tile of a batch.
Reading is read_batch's cpu.raw_numba with one path a call, as a Dataset has it: what is left of the time is the network's.
He et al., Deep residual learning for image recognition, arXiv 1512.03385.
"""

from impls.contract import implementation
from impls.train_tiles.datasets import reader
from impls.train_tiles.training import train_by

READER = reader("cpu.raw_numba").name


@implementation(
    device="cpu",
    family="raw",
    summary="ResNet-18 in torch, tiles normalised by Numba",
    limits={"compression": ("none",)},
)
def train_tiles(parameters, exp_avg, exp_avg_sq, statistics, tiles, labels, step=1, batch=32, seed=0, workers=0, lr=1e-3):
    """One pass over N tiles in place; return the loss of every batch."""
    state = parameters, exp_avg, exp_avg_sq, statistics
    return train_by(READER, *state, tiles, labels, step, batch, seed, workers, lr)
