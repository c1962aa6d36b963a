"""torch's ResNet-18 and Adam on tiles that rasterio opens one by one: reader A of a post, the baseline of every table.

0.9e9 FLOPs a tile of 64x64 pixels, thrice those of a pass forward; extra memory: gradients, and 2 MB a tile of a batch.
Reading is read_batch's cpu.rasterio with one path a call, as a Dataset has it.
He et al., Deep residual learning for image recognition, arXiv 1512.03385.
"""

from impls.contract import implementation
from impls.train_tiles.datasets import reader
from impls.train_tiles.training import train_by

READER = reader("cpu.rasterio").name


@implementation(
    device="cpu",
    family="library",
    summary="ResNet-18 in torch, tiles read by rasterio",
)
def train_tiles(parameters, exp_avg, exp_avg_sq, statistics, tiles, labels, step=1, batch=32, seed=0, workers=0, lr=1e-3):
    """One pass over N tiles in place; return the loss of every batch."""
    state = parameters, exp_avg, exp_avg_sq, statistics
    return train_by(READER, *state, tiles, labels, step, batch, seed, workers, lr)
