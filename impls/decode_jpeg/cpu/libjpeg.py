"""libjpeg-turbo decodes whole images, reduced by its inverse transform where a scale is given; the region is then copied out.

About 22 operations a pixel of the image, on Huffman codes that are read bit by bit; extra memory: the whole image where a
region is wanted. The library that OpenCV and Pillow call, without what they do around it; the system's own.
https://github.com/libjpeg-turbo/libjpeg-turbo
"""

from impls.contract import implementation
from impls.decode_jpeg.batch import cropped, each
from impls.decode_jpeg.libjpeg_images import decode


@implementation(device="cpu", family="libjpeg", summary="libjpeg-turbo: decodes the whole image, then crops")
def decode_jpeg(jpegs, regions=None, scale=1, workers=1):
    """N JPEGs to N arrays (height, width, 3)."""
    return each(lambda i: cropped(decode(jpegs, i, scale), regions[i]), len(jpegs), workers)
