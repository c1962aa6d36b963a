"""Two passes in Cython, in vectors and threaded over rows: from the region's bytes to the patch, and from there to the mask.

6 R S + 30 FLOPs a pixel of a patch. What is interpolated between, and by how much, is worked out once for a row and once for
all columns; extra memory: the decoded image, a patch and its marks. The idea of cpu.numba_fused, compiled ahead of time.
OpenCV decodes.
"""

from impls.contract import implementation
from impls.decode_jpeg.opencv_images import decode
from impls.preprocess.cython_passes import finish, to_patch


@implementation(device="cpu", family="fused", summary="Cython: one pass for the patch, one for the mask, threaded")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    masks = []
    for i, region in enumerate(regions):
        pixels = decode(jpegs, i)
        patch = to_patch(pixels, region, size, mean, std, weight.shape[2:])
        masks.append(finish(patch, weight, threshold, region, size, pixels.shape[:2]))
    return masks
