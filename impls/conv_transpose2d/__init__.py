"""conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1), as torch has it.

The adjoint of conv2d: input (N, C, H, W), weight (C, K/groups, R, S), bias (K,); output (N, K, P, Q), on which every pixel of
the input lays its scaled kernel. In comments here p and q count the output's rows and columns, y and x the input's.
"""
