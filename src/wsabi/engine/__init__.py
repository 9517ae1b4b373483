"""The adaptive engine: locate the mass, recentre the measure on it, integrate there, certify the result.

explorer     finds one region of posterior mass by annealing a surrogate of log ℓ      (locate)
regions      the mixture q of such regions, its WSABI models and their integral        (recentre, integrate)
certificate  an unbiased estimate from fresh points, with the models as control        (certify)
adaptive     the order of these steps, one evaluation at a time
"""

__all__: list[str] = []
