"""OpenCV decodes whole images, reduced by its decoder where a scale is given; the region is then copied out.

About 22 operations a pixel of the image, on Huffman codes that are read bit by bit; extra memory: the whole image where a
region is wanted. OpenCV's wheels bring a libjpeg-turbo of their own.
https://docs.opencv.org/4.x/d4/da8/group__imgcodecs.html
"""

from impls.contract import implementation
from impls.decode_jpeg.batch import cropped, each
from impls.decode_jpeg.opencv_images import decode


@implementation(device="cpu", family="library", summary="OpenCV: decodes the whole image, then crops")
def decode_jpeg(jpegs, regions=None, scale=1, workers=1):
    """N JPEGs to N arrays (height, width, 3)."""
    return each(lambda i: cropped(decode(jpegs, i, scale), regions[i]), len(jpegs), workers)
