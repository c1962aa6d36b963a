"""adam_step(parameter, gradient, exp_avg, exp_avg_sq, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8): one step of Adam.

Kingma and Ba, arXiv 1412.6980, algorithm 1. parameter, gradient and both moments are arrays of one shape and dtype, in C
order; all but the gradient are updated in place, and nothing is returned. step is the number of this step, from 1. Names and
defaults are those of torch.optim.Adam's state: https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html
"""
