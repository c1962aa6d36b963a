"""libjpeg-turbo decodes the region alone: rows above are skipped, rows below never read, columns beside not transformed.

About 22 operations a pixel of the region and 8 pixels around it. The Huffman codes of all rows down to the region's last are
still read, since each begins where the one before ends; extra memory: a row. Less work first, as a post on speeding up a
program for computer vision has it, by jpeg_skip_scanlines and jpeg_crop_scanline.
https://github.com/libjpeg-turbo/libjpeg-turbo/blob/main/doc/libjpeg.txt
"""

from impls.contract import implementation
from impls.decode_jpeg.batch import each
from impls.decode_jpeg.libjpeg_images import decode


@implementation(device="cpu", family="libjpeg", summary="libjpeg-turbo: decodes only the region")
def decode_jpeg(jpegs, regions=None, scale=1, workers=1):
    """N JPEGs to N arrays (height, width, 3)."""
    return each(lambda i: decode(jpegs, i, scale, regions[i]), len(jpegs), workers)
