"""The adaptive engine: locate the mass, recentre the measure on it, integrate there, certify the result.

interactions   kernel of functions of any few parameters, each on a bent axis
log_surrogate  Gaussian process on log ℓ
frame          coordinates of the Gaussian that follows the mass
relief         how much doubt an evaluation would take away
explorer       finds one region of posterior mass by annealing that surrogate           (locate)
ascent         climbs to a mode, where there are gradients                              (locate)
looking        one such search under way                                                (locate)
found          what searches have found, and what they say is hidden                    (locate)
mirrors        parameters exchanged and reversed                                        (locate)
images         which mirror images of a region hold mass too                            (locate)
lookout        which look comes next, and when there were enough                        (locate)
students       Student mixtures shaped like a surrogate's posterior                     (recentre)
regions        the mixture q of regions, its WSABI models and their integral            (recentre, integrate)
proposal       the density of the fresh points                                          (certify)
crossfit       surrogates with the fresh points, and without any one of them            (certify)
certificate    an unbiased estimate from them, with the models as control               (certify)
pareto         how heavy the tail of their weights is                                   (certify)
evaluations    every point and value told, and who had asked for it
adaptive       the order of these steps, one evaluation at a time
"""

__all__: list[str] = []
