"""im2col(image, kernel, stride=1, padding=0, dilation=1, fill=0): the windows of an image as the columns of a matrix.

image: of any rank from 1 to 16, without channels, in float32 or float64. kernel: the window's size along each axis; stride,
padding and dilation: one number, or one an axis. Padding is put before and after an axis, and holds `fill`. Returns a new
matrix (taps, pixels): row t is the image as tap t of the window sees it, column p the window at pixel p of the output, both
counted with the last axis running fastest, as torch.nn.Unfold does for two axes:
https://docs.pytorch.org/docs/stable/generated/torch.nn.Unfold.html

A weight times this matrix is a convolution: impls/conv2d/im2col/ multiplies. Here the matrix alone is the question.
"""
