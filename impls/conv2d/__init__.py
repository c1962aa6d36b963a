"""conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1), as torch.nn.functional.conv2d has it.

Cross-correlation of input (N, C, H, W) with weight (K, C/groups, R, S); bias (K,); output (N, K, P, Q).
"""
