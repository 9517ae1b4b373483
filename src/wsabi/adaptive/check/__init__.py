"""The check of the models' integral by independent evaluations that no model has seen.

proposal   the density of the check points
crossfit   surrogates with the check points as data, and without any one of them
pareto     the tail of importance weights
controls   the models as control variates, and their integrals
residuals  the unbiased estimate from the check points
combine    the one formula: models and check points, weighted by their precisions
"""

__all__: list[str] = []
