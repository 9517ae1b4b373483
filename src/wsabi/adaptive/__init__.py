"""The default engine: find the regions of posterior mass, integrate over each, check the result by check points.

surrogate/   a model of log ℓ: what a search learns
search/      finding one region after another, and the record of what was found
symmetry/    permutations and sign changes of the parameters under which ℓπ may be the same
regions      the mixture q of regions, their WSABI models and the integral over them
evaluations  every point and value told, and who had asked for it
searches     which search comes next, and when there were enough
check/       an unbiased estimate from check points, with the models as control
engine       AdaptiveModel: the order of these steps, one evaluation at a time

The packages search/ and symmetry/ need each other's modules, never in a circle: tests/test_architecture.py ranks them.
"""

__all__: list[str] = []
