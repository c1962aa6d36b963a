"""cpu.opencv with OpenCV's dispatched vector code switched off: what is left was compiled for the oldest machine it supports.

6 R S + 30 FLOPs a pixel of a patch; extra memory: cpu.opencv's. OpenCV asks the processor at run time and takes the best of
what it was built with; setUseOptimized(False) makes it take the baseline, SSE3 in its wheels for x86-64. Whether that is SSE
or AVX, cv2.getCPUFeaturesLine() says: a star marks what is dispatched, a question mark what the processor lacks; and
cv2.getBuildInformation(), for how many files. The decoder is libjpeg-turbo, which picks by itself.
https://docs.opencv.org/4.x/dc/d71/tutorial_py_optimization.html
"""

import threading

import cv2

from impls.contract import implementation
from impls.preprocess.cpu import opencv

_SWITCH = threading.Lock()  # the switch is the whole process's


@implementation(device="cpu", family="library", summary="OpenCV without dispatched vector code, one image at a time")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    with _SWITCH:
        before = cv2.useOptimized()
        cv2.setUseOptimized(False)
        try:
            return opencv.preprocess.unchecked(jpegs, regions, weight, threshold, size, mean, std)
        finally:
            cv2.setUseOptimized(before)
