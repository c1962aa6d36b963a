"""train_tiles(parameters, exp_avg, exp_avg_sq, statistics, tiles, labels, step=1, batch=32, seed=0, workers=0, lr=1e-3).

One pass of training ResNet-18 over satellite tiles: read, forward, cross entropy, gradients and one step of Adam for each
batch. parameters, exp_avg, exp_avg_sq and statistics are lists of float32 arrays, in the order and shapes of
impls/train_tiles/arguments.py, and changed in place; statistics are the running means and variances of batch normalisation.
tiles: N paths, as read_batch has them, of one height and width. labels: (N,) in int64, from 0 to 9. step: the number of the
first step, from 1. The tiles come in the order of torch.randperm(N) by a generator of this seed, `batch` at a time; the last
batch may be smaller. workers: processes that read, 0 for none beside this one.

Returns the losses, one for each batch. Where a tile is bad the error names it, in read_batch's words, and the steps that were
made until then stay made.
"""
