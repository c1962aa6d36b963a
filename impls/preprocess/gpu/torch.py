"""torch's operators on a CUDA device: all regions go there as bytes, all marks come back in one piece.

6 R S + 30 FLOPs a pixel of a patch, 3 h w bytes to the device for each image and size^2 back. Each region is resized by
itself; then all are normalised, convolved and compared at once; extra memory: the regions in float32, the batch (N, 3, size,
size) and the responses. TensorFloat-32 is off. OpenCV decodes, on the CPU.
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

import numpy as np
import torch
from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.devices import require_torch
from impls.decode_jpeg.opencv_images import decode
from impls.preprocess.arguments import fit
from impls.preprocess.stages import crop, paste

require_torch("gpu.torch")
DEVICE = "cuda"


@implementation(device="cuda", family="library", summary="torch: all images in one batch, transfers included")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    shapes, parts = [], []
    for i, region in enumerate(regions):
        pixels = decode(jpegs, i)
        shapes.append(pixels.shape[:2])
        parts.append(upload(np.ascontiguousarray(crop(pixels, region))))
    marks = download(compute(parts, upload(weight), upload(mean), upload(std), regions, threshold, size))
    masks = []
    for each, region, shape in zip(marks, regions, shapes, strict=True):
        height, width = fit(region, size)
        masks.append(paste(each[:height, :width], region, shape))
    return masks


def upload(array):
    """An array on the device."""
    return torch.from_numpy(array).to(DEVICE)


def compute(parts, weight, mean, std, regions, threshold, size):
    """The marks (N, size, size) in uint8 of all regions' pixels: all that the device does, waited for."""
    patches = torch.zeros((len(parts), 3, size, size), device=DEVICE)
    for patch, part, region in zip(patches, parts, regions, strict=True):
        height, width = fit(region, size)
        pixels = part.permute(2, 0, 1)[None].float()
        resized = functional.interpolate(pixels, (height, width), mode="bilinear", align_corners=False)[0]
        patch[:, :height, :width] = (resized / 255 - mean[:, None, None]) / std[:, None, None]
    with torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=False, allow_tf32=False, fp32_precision="ieee"
    ):
        responses = functional.conv2d(patches, weight, padding="same")[:, 0]
    marks = (responses > threshold).byte() * 255
    torch.cuda.synchronize()
    return marks


def download(tensor):
    """A tensor of the device as one of NumPy's arrays, once it is computed."""
    return tensor.cpu().numpy()
