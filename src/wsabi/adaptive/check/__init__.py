"""The check of the models' integral by independent evaluations that no model has seen.

proposal  the density of the check points
crossfit  surrogates with the check points, and without any one of them
pareto    how heavy the tail of their weights is
combine   an unbiased estimate from them, with the models as control
"""

__all__: list[str] = []
