"""A Gaussian process on log ℓ, the coordinates it lives in, and densities shaped like it.

interactions  kernel of functions of any few parameters, each on a bent axis
model         the Gaussian process on log ℓ
frame         coordinates of the Gaussian that follows the mass
students      Student mixtures shaped like a surrogate's posterior
"""

__all__: list[str] = []
