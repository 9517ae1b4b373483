"""The adaptive engine: locate the mass, recentre the measure on it, integrate there, certify the result.

log_surrogate  Gaussian process on log ℓ
explorer       finds one region of posterior mass by annealing that surrogate           (locate)
looking        one such search under way, and the list of what searches have found      (locate)
students       Student mixtures shaped like a surrogate's posterior                     (recentre)
regions        the mixture q of regions, its WSABI models and their integral            (recentre, integrate)
proposal       the density of the fresh points                                          (certify)
certificate    an unbiased estimate from them, with the models as control               (certify)
pareto         how heavy the tail of their weights is                                   (certify)
adaptive       the order of these steps, one evaluation at a time
"""

__all__: list[str] = []
