"""Gaussian processes: of numbers, and of where there are any.

kernel       the squared-exponential kernel
exact        one Gaussian process: condition, append, predict, leave out, evidence and its gradient
fit          its length-scales, by maximum a posteriori
feasibility  where a likelihood is positive, learnt from where it is zero
"""

__all__: list[str] = []
