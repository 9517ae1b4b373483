"""A Gaussian process on log ℓ, its coordinates, and mixtures with the shape of its posterior.

interactions  kernel of sums of functions of few parameters, each on a bent axis
theta         hyperparameters of the kernel
model         the Gaussian process on log ℓ: predictions, more data, fewer data
learning      MAP hyperparameters, and the fit of a surrogate
frame         coordinates in which the Gaussian q is standard normal
students      Student mixtures with the shape of a surrogate's posterior
"""

__all__: list[str] = []
