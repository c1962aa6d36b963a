"""libjpeg-turbo decodes the region alone, then the two passes of cpu.cython_fused: less work already where most of it is.

6 R S + 30 FLOPs a pixel of a patch, after what decode_jpeg's cpu.libjpeg_region does; extra memory: the region's pixels, a
patch and its marks. The whole image is never there.
"""

from impls.contract import implementation
from impls.decode_jpeg.arguments import Region
from impls.decode_jpeg.jpeg import shape
from impls.decode_jpeg.libjpeg_images import decode
from impls.preprocess.cython_passes import finish, to_patch


@implementation(device="cpu", family="fused", summary="libjpeg-turbo decodes only the region, Cython does the rest")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    masks = []
    for i, region in enumerate(regions):
        pixels = decode(jpegs, i, region=region)
        patch = to_patch(pixels, Region(0, 0, region.height, region.width), size, mean, std, weight.shape[2:])
        masks.append(finish(patch, weight, threshold, region, size, shape(jpegs[i])))
    return masks
