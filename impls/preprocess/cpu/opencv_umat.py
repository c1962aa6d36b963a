"""cpu.opencv on UMat: OpenCL kernels where OpenCV finds a device, the region's pixels copied to it and the marks copied back.

6 R S + 30 FLOPs a pixel of a patch. One upload and one download an image, since each NumPy step between would be a copy more
each way; extra memory: cpu.opencv's, on the device. With pocl the device is the CPU itself (Debian: pocl-opencl-icd,
ocl-icd-libopencl1, and OPENCV_OPENCL_DEVICE=:CPU:), and threads are pocl's own, one for each core that the process may use.
https://docs.opencv.org/4.x/d7/d45/classcv_1_1UMat.html
"""

import os
from pathlib import Path

import cv2
import numpy as np

from impls.contract import Unavailable, implementation
from impls.decode_jpeg.opencv_images import decode
from impls.preprocess.arguments import fit
from impls.preprocess.cpu.opencv import convolve
from impls.preprocess.stages import crop, paste

# Asking OpenCV itself would start the driver's threads, which a fork of this process then lacks.
_DEVICE = os.environ.get("OPENCV_OPENCL_DEVICE")
_CURE = "set OPENCV_OPENCL_DEVICE=:CPU: and install a driver (Debian: apt-get install pocl-opencl-icd ocl-icd-libopencl1)"
if not _DEVICE or not any(Path("/etc/OpenCL/vendors").glob("*.icd")):
    raise Unavailable(f"cpu.opencv_umat needs OpenCL, and a device of it that the environment names: {_CURE}")


@implementation(device="cpu", family="library", summary="OpenCV's UMat (OpenCL): one image at a time, transfers included")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    cv2.ocl.setUseOpenCL(True)
    if not cv2.ocl.useOpenCL():  # else UMat would quietly compute without OpenCL
        raise Unavailable(f"cpu.opencv_umat needs OpenCL, and OpenCV finds no device called {_DEVICE}: {_CURE}")
    masks = []
    for i, region in enumerate(regions):
        pixels = decode(jpegs, i)
        height, width = fit(region, size)
        response = convolve(to_patch(pixels, region, size, mean, std), weight)
        _, marks = cv2.threshold(response, threshold, 255, cv2.THRESH_BINARY)
        masks.append(paste(marks.get()[:height, :width].astype(np.uint8), region, pixels.shape[:2]))
    return masks


def to_patch(pixels, region, size, mean, std):
    """The region as a normalised patch (size, size, 3) on OpenCL's device."""
    height, width = fit(region, size)
    part = cv2.UMat(np.ascontiguousarray(crop(pixels, region)).astype(np.float32))  # type: ignore[call-overload]
    part = cv2.resize(part, (width, height), interpolation=cv2.INTER_LINEAR)
    part = cv2.multiply(cv2.subtract(part, (*(255.0 * mean).tolist(), 0)), (*(1 / (255.0 * std)).tolist(), 0))
    return cv2.copyMakeBorder(part, 0, size - height, 0, size - width, cv2.BORDER_CONSTANT, value=0)
