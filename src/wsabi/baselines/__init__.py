"""The methods that the paper compares with: each takes a log-likelihood and a prior and returns a ``Result``.

Nothing here is loaded by ``import wsabi``.
"""

from wsabi.baselines.annealing import annealed_importance_sampling
from wsabi.baselines.bmc import bayesian_monte_carlo
from wsabi.baselines.doubly_bayesian import bbq
from wsabi.baselines.hermite import bayes_hermite
from wsabi.baselines.monte_carlo import simple_monte_carlo

__all__ = ["annealed_importance_sampling", "bayes_hermite", "bayesian_monte_carlo", "bbq", "simple_monte_carlo"]
