"""read_batch(tiles, bands=(4, 3, 2), scale=4000.0, workers=1): some bands of satellite tiles, scaled to [0, 1], as one batch.

tiles: N paths of multi-band GeoTIFF files, uint8 or uint16, all of one shape, as EuroSAT has them: 13 bands of 64x64 pixels
in uint16 (Helber et al., arXiv 1709.00029). bands are numbered from 1. The result is clip(x / scale, 0, 1) in float32, of
shape (N, len(bands), H, W). workers: how many threads, or processes, read at the same time. What a file claims is checked
against its length before a library opens it: see tiff.py. Parts that GDAL left out of a sparse file have its value for no
data, or zero. What is not read raises NotImplementedError that names it.
"""
